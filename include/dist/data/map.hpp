#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include <dist/core/error.hpp>
#include <dist/data/batch_size.hpp>
#include <dist/data/dataset.hpp>
#include <dist/data/rows.hpp>

namespace dist::data {

/// Whether a function of batches gives batches with as many rows.
enum class RowCount : bool { changes, kept };

/// Every element of `D` passed through a function. What it makes of a batch stands for a batch; whether that has rows to
/// divide is another question. Made by `map`.
template <Dataset D, class Function>
class MapDataset : public StepDataset<MapDataset<D, Function>, D> {
 public:
  using Element = std::remove_cvref_t<decltype(std::declval<const Function&>()(std::declval<const ElementOf<D>&>()))>;
  static constexpr bool lends_elements = false;

  MapDataset(D dataset, Function function, RowCount rows)
      : StepDataset<MapDataset, D>(std::move(dataset)), function_(std::move(function)), rows_(rows) {}

  class Iterator {
   public:
    Iterator(const MapDataset& dataset, std::uint64_t epoch)
        : function_(&dataset.function_), rows_(dataset.rows_), upstream_(dataset.dataset_.iterate(epoch)) {}

    bool next(Element& element) {
      if (!upstream_.next(argument_)) return false;
      element = (*function_)(std::as_const(argument_));
      if constexpr (HasRows<ElementOf<D>> && HasRows<Element>)
        if (rows_ == RowCount::kept) require_rows(row_count(element), row_count(argument_));
      return true;
    }

    [[nodiscard]] std::uint64_t position() const requires Resumable<IteratorOf<D>> { return upstream_.position(); }
    void seek(std::uint64_t position) requires Resumable<IteratorOf<D>> { upstream_.seek(position); }

   private:
    static void require_rows(std::size_t rows, std::size_t expected) {
      if (rows != expected)
        throw ShapeMismatch("The function of map was said to keep the rows of a batch",
                            concat("it made ", rows, " of ", expected), "Leave out RowCount::kept");
    }

    const Function* function_;
    RowCount rows_;
    IteratorOf<D> upstream_;
    ElementOf<D> argument_{};
  };

  /// The batch size before the function: when distributed, rows are joined to batches of this size again.
  [[nodiscard]] std::size_t batch_size() const { return HasRows<Element> ? known_batch_size(this->dataset_) : 0; }
  [[nodiscard]] PartialBatches partial_batches() const {
    return rows_ == RowCount::kept ? partial_batches_of(this->dataset_) : PartialBatches::any;
  }

 private:
  Function function_;
  RowCount rows_;
};

/// Passes every element through `function`, which is called as a constant and gives a value that does not
/// refer to its argument.
///
/// After `batch`, RowCount::kept says that the function changes no batch's number of rows, so that the number of steps
/// of a distributed dataset is known (spec I27). Throws, while iterating, ShapeMismatch when it does.
template <class Function>
[[nodiscard]] auto map(Function function, RowCount rows = RowCount::changes) {
  return Pipe{[function = std::move(function), rows]<Dataset D>(D dataset) {
    constexpr bool callable = std::is_invocable_v<const Function&, const ElementOf<D>&>;
    if constexpr (callable)
      return MapDataset<D, Function>{std::move(dataset), function, rows};
    else
      static_assert(callable, "map: the function must be callable, as a constant, with an element of the dataset");
  }};
}

}  // namespace dist::data
