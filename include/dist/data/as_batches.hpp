#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include <dist/data/batch_size.hpp>
#include <dist/data/dataset.hpp>
#include <dist/data/rows.hpp>

namespace dist::data {

/// The elements of `D`, which are batches. Made by `as_batches`.
template <Dataset D>
class AsBatchesDataset : public StepDataset<AsBatchesDataset<D>, D> {
 public:
  static constexpr bool is_batched = true;

  AsBatchesDataset(D dataset, std::size_t batch_size)
      : StepDataset<AsBatchesDataset, D>(std::move(dataset)), batch_size_(batch_size) {}

  [[nodiscard]] auto iterate(std::uint64_t epoch) const { return this->dataset_.iterate(epoch); }
  [[nodiscard]] std::size_t batch_size() const noexcept { return batch_size_; }
  [[nodiscard]] PartialBatches partial_batches() const {
    return known_batch_size(this->dataset_) == batch_size_ ? partial_batches_of(this->dataset_) : PartialBatches::any;
  }

 private:
  std::size_t batch_size_;
};

/// Says that the elements are batches already, as a generator may make them, so that they can be distributed.
/// `batch_size` is what the full ones have; 0, when it is not known, has every batch divided for itself (spec I02,
/// I05).
[[nodiscard]] inline auto as_batches(std::size_t batch_size = 0) {
  return Pipe{[=]<Dataset D>(D dataset) {
    constexpr bool has_rows = HasRows<ElementOf<D>>;
    if constexpr (has_rows)
      return AsBatchesDataset<D>{std::move(dataset), batch_size};
    else
      static_assert(has_rows,
                    "as_batches: elements must be Tensors, TensorViews, or Examples, tuples or arrays of these");
  }};
}

}  // namespace dist::data
