#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

#include <dist/data/batch_size.hpp>
#include <dist/data/dataset.hpp>

namespace dist::data {

/// The elements of `First`, then those of `Second`. Made by `concatenate`.
template <Dataset First, Dataset Second>
class ConcatenateDataset : public DatasetRange<ConcatenateDataset<First, Second>> {
 public:
  using Element = ElementOf<First>;
  static constexpr bool is_batched = data::is_batched<First> && data::is_batched<Second>;
  static constexpr bool lends_elements = data::lends_elements<First> || data::lends_elements<Second>;

  ConcatenateDataset(First first, Second second) : first_(std::move(first)), second_(std::move(second)) {}

  class Iterator {
   public:
    Iterator(const ConcatenateDataset& dataset, std::uint64_t epoch)
        : dataset_(&dataset), epoch_(epoch), first_(dataset.first_.iterate(epoch)) {}

    bool next(Element& element) {
      if (first_) {
        if (first_->next(element)) return true;
        first_.reset();
        second_.emplace(dataset_->second_.iterate(epoch_));
      }
      return second_->next(element);
    }

   private:
    const ConcatenateDataset* dataset_;
    std::uint64_t epoch_;
    std::optional<IteratorOf<First>> first_;
    std::optional<IteratorOf<Second>> second_;
  };

  [[nodiscard]] Iterator iterate(std::uint64_t epoch) const { return Iterator{*this, epoch}; }
  [[nodiscard]] Cardinality cardinality() const {
    const Cardinality a = first_.cardinality();
    const Cardinality b = second_.cardinality();
    if (a.is_infinite() || b.is_infinite()) return Cardinality::infinite();
    if (!a.is_known() || !b.is_known()) return Cardinality::unknown();
    if (a.count() > std::numeric_limits<std::size_t>::max() - b.count()) return Cardinality::unknown();
    return Cardinality::known(a.count() + b.count());
  }
  /// The batch size of both; not known where they differ.
  [[nodiscard]] std::size_t batch_size() const {
    const std::size_t size = known_batch_size(first_);
    return size == known_batch_size(second_) ? size : 0;
  }
  [[nodiscard]] PartialBatches partial_batches() const {
    return partial_batches_of(first_) == PartialBatches::none ? partial_batches_of(second_) : PartialBatches::any;
  }
  [[nodiscard]] std::tuple<First&, Second&> upstreams() noexcept { return std::tie(first_, second_); }

 private:
  First first_;
  Second second_;
};

/// Goes on with the elements of `second`, which must be of the same type, when the dataset has ended.
template <class Second>
[[nodiscard]] auto concatenate(Second second) {
  return Pipe{[second = std::move(second)]<Dataset First>(First first) {
    constexpr bool same = [] {
      if constexpr (Dataset<Second>) return std::is_same_v<ElementOf<First>, ElementOf<Second>>;
      return false;
    }();
    if constexpr (same)
      return ConcatenateDataset<First, Second>{std::move(first), second};
    else
      static_assert(same, "concatenate: the argument must be a dataset whose elements have the type of the dataset's");
  }};
}

}  // namespace dist::data
