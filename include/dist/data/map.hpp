#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include <dist/data/batch_size.hpp>
#include <dist/data/dataset.hpp>
#include <dist/data/rows.hpp>

namespace dist::data {

/// Every element of `D` passed through a function. Made by `map`.
template <Dataset D, class Function>
class MapDataset : public DatasetRange<MapDataset<D, Function>> {
 public:
  using Element = std::remove_cvref_t<decltype(std::declval<const Function&>()(std::declval<const ElementOf<D>&>()))>;
  /// What a function makes of a batch stands for a batch. Whether it has rows to divide is another question.
  static constexpr bool is_batched = data::is_batched<D>;

  MapDataset(D dataset, Function function) : dataset_(std::move(dataset)), function_(std::move(function)) {}

  class Iterator {
   public:
    Iterator(const MapDataset& dataset, std::uint64_t epoch)
        : function_(&dataset.function_), upstream_(dataset.dataset_.iterate(epoch)) {}

    bool next(Element& element) {
      if (!upstream_.next(argument_)) return false;
      element = (*function_)(std::as_const(argument_));
      return true;
    }

   private:
    const Function* function_;
    IteratorOf<D> upstream_;
    ElementOf<D> argument_{};
  };

  [[nodiscard]] Iterator iterate(std::uint64_t epoch) const { return Iterator{*this, epoch}; }
  [[nodiscard]] Cardinality cardinality() const { return dataset_.cardinality(); }
  /// That before the function, which is taken to keep the number of rows.
  [[nodiscard]] std::size_t batch_size() const { return HasRows<Element> ? known_batch_size(dataset_) : 0; }
  [[nodiscard]] PartialBatches partial_batches() const { return partial_batches_of(dataset_); }
  [[nodiscard]] D& upstream() noexcept { return dataset_; }

 private:
  D dataset_;
  Function function_;
};

/// Passes every element through `function`, which is called as a constant and gives a value that does not
/// refer to its argument.
template <class Function>
[[nodiscard]] auto map(Function function) {
  return Pipe{[function = std::move(function)]<Dataset D>(D dataset) {
    constexpr bool callable = std::is_invocable_v<const Function&, const ElementOf<D>&>;
    if constexpr (callable)
      return MapDataset<D, Function>{std::move(dataset), function};
    else
      static_assert(callable, "map: the function must be callable, as a constant, with an element of the dataset");
  }};
}

}  // namespace dist::data
