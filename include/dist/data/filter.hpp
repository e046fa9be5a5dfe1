#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <utility>

#include <dist/data/batch_size.hpp>
#include <dist/data/dataset.hpp>

namespace dist::data {

/// The elements of `D` for which a predicate holds. Made by `filter`.
template <Dataset D, class Predicate>
class FilterDataset : public DatasetRange<FilterDataset<D, Predicate>> {
 public:
  using Element = ElementOf<D>;
  static constexpr bool is_batched = data::is_batched<D>;
  static constexpr bool lends_elements = data::lends_elements<D>;

  FilterDataset(D dataset, Predicate predicate) : dataset_(std::move(dataset)), predicate_(std::move(predicate)) {}

  class Iterator {
   public:
    Iterator(const FilterDataset& dataset, std::uint64_t epoch)
        : predicate_(&dataset.predicate_), upstream_(dataset.dataset_.iterate(epoch)) {}

    bool next(Element& element) {
      while (upstream_.next(element))
        if ((*predicate_)(std::as_const(element))) return true;
      return false;
    }

   private:
    const Predicate* predicate_;
    IteratorOf<D> upstream_;
  };

  [[nodiscard]] Iterator iterate(std::uint64_t epoch) const { return Iterator{*this, epoch}; }
  /// Unknown, unless there is nothing to choose from.
  [[nodiscard]] Cardinality cardinality() const {
    return dataset_.cardinality() == Cardinality::known(0) ? Cardinality::known(0) : Cardinality::unknown();
  }
  [[nodiscard]] std::size_t batch_size() const { return known_batch_size(dataset_); }
  [[nodiscard]] PartialBatches partial_batches() const { return partial_batches_of(dataset_); }
  [[nodiscard]] D& upstream() noexcept { return dataset_; }

 private:
  D dataset_;
  Predicate predicate_;
};

/// Keeps the elements for which `predicate`, called as a constant, is true. After `batch` it keeps or drops whole
/// batches. If an infinite dataset never satisfies the predicate, a pass never gets its first element.
template <class Predicate>
[[nodiscard]] auto filter(Predicate predicate) {
  return Pipe{[predicate = std::move(predicate)]<Dataset D>(D dataset) {
    constexpr bool chooses = std::predicate<const Predicate&, const ElementOf<D>&>;
    if constexpr (chooses)
      return FilterDataset<D, Predicate>{std::move(dataset), predicate};
    else
      static_assert(chooses,
                    "filter: the predicate must be callable, as a constant, with an element of the dataset, and give "
                    "a bool");
  }};
}

}  // namespace dist::data
