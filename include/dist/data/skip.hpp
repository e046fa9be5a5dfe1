#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include <dist/data/batch_size.hpp>
#include <dist/data/dataset.hpp>

namespace dist::data {

/// The elements of `D` without the first ones. Made by `skip`.
template <Dataset D>
class SkipDataset : public DatasetRange<SkipDataset<D>> {
 public:
  using Element = ElementOf<D>;
  static constexpr bool is_batched = data::is_batched<D>;
  static constexpr bool lends_elements = data::lends_elements<D>;

  SkipDataset(D dataset, std::size_t count) : dataset_(std::move(dataset)), count_(count) {}

  class Iterator {
   public:
    Iterator(const SkipDataset& dataset, std::uint64_t epoch)
        : upstream_(dataset.dataset_.iterate(epoch)), left_(dataset.count_) {}

    bool next(Element& element) {
      for (; left_ > 0; --left_)
        if (!upstream_.next(element)) return false;
      return upstream_.next(element);
    }

   private:
    IteratorOf<D> upstream_;
    std::size_t left_;
  };

  [[nodiscard]] Iterator iterate(std::uint64_t epoch) const { return Iterator{*this, epoch}; }
  [[nodiscard]] Cardinality cardinality() const {
    const Cardinality all = dataset_.cardinality();
    if (!all.is_known()) return all;
    return Cardinality::known(all.count() > count_ ? all.count() - count_ : 0);
  }
  [[nodiscard]] std::size_t batch_size() const { return known_batch_size(dataset_); }
  [[nodiscard]] PartialBatches partial_batches() const { return partial_batches_of(dataset_); }
  [[nodiscard]] D& upstream() noexcept { return dataset_; }

 private:
  D dataset_;
  std::size_t count_;
};

/// Passes over the first `count` elements: they are made, and thrown away, when the first element is asked for.
[[nodiscard]] inline auto skip(std::size_t count) {
  return Pipe{[=]<Dataset D>(D dataset) { return SkipDataset<D>{std::move(dataset), count}; }};
}

}  // namespace dist::data
