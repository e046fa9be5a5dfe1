#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include <dist/data/batch_size.hpp>
#include <dist/data/dataset.hpp>

namespace dist::data {

/// The first elements of `D`. Made by `take`.
template <Dataset D>
class TakeDataset : public DatasetRange<TakeDataset<D>> {
 public:
  using Element = ElementOf<D>;
  static constexpr bool is_batched = data::is_batched<D>;
  static constexpr bool lends_elements = data::lends_elements<D>;

  TakeDataset(D dataset, std::size_t count) : dataset_(std::move(dataset)), count_(count) {}

  class Iterator {
   public:
    Iterator(const TakeDataset& dataset, std::uint64_t epoch)
        : upstream_(dataset.dataset_.iterate(epoch)), left_(dataset.count_) {}

    bool next(Element& element) {
      if (left_ == 0 || !upstream_.next(element)) return false;
      --left_;
      return true;
    }

   private:
    IteratorOf<D> upstream_;
    std::size_t left_;
  };

  [[nodiscard]] Iterator iterate(std::uint64_t epoch) const { return Iterator{*this, epoch}; }
  [[nodiscard]] Cardinality cardinality() const {
    const Cardinality all = dataset_.cardinality();
    if (all.is_infinite() || count_ == 0) return Cardinality::known(count_);
    if (!all.is_known()) return all;
    return Cardinality::known(all.count() < count_ ? all.count() : count_);
  }
  [[nodiscard]] std::size_t batch_size() const { return known_batch_size(dataset_); }
  [[nodiscard]] PartialBatches partial_batches() const { return partial_batches_of(dataset_); }
  [[nodiscard]] D& upstream() noexcept { return dataset_; }

 private:
  D dataset_;
  std::size_t count_;
};

/// Ends after `count` elements, or with the dataset if that has fewer. The dataset is not asked for more than `count`.
[[nodiscard]] inline auto take(std::size_t count) {
  return Pipe{[=]<Dataset D>(D dataset) { return TakeDataset<D>{std::move(dataset), count}; }};
}

}  // namespace dist::data
