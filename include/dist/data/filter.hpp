#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <utility>

#include <dist/data/dataset.hpp>

namespace dist::data {

/// The elements of `D` for which a predicate holds. Made by `filter`.
template <Dataset D, class Predicate>
class FilterDataset : public StepDataset<FilterDataset<D, Predicate>, D> {
 public:
  FilterDataset(D dataset, Predicate predicate)
      : StepDataset<FilterDataset, D>(std::move(dataset)), predicate_(std::move(predicate)) {}

  class Iterator {
   public:
    Iterator(const FilterDataset& dataset, std::uint64_t epoch)
        : predicate_(&dataset.predicate_), upstream_(dataset.dataset_.iterate(epoch)) {}

    bool next(ElementOf<D>& element) {
      while (upstream_.next(element))
        if ((*predicate_)(std::as_const(element))) return true;
      return false;
    }

   private:
    const Predicate* predicate_;
    IteratorOf<D> upstream_;
  };

  /// Unknown, unless there is nothing to choose from.
  [[nodiscard]] Cardinality cardinality() const {
    return this->dataset_.cardinality() == Cardinality::known(0) ? Cardinality::known(0) : Cardinality::unknown();
  }

 private:
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
