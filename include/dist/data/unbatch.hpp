#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include <dist/data/dataset.hpp>
#include <dist/data/owned.hpp>
#include <dist/data/rows.hpp>

namespace dist::data {

/// The rows of the elements of `D`. Made by `unbatch`.
template <Dataset D>
class UnbatchDataset : public StepDataset<UnbatchDataset<D>, D> {
  using Row = RowOf<ElementOf<D>>;
  /// A batch that is nothing but views outlives its place in the pass, and so do views of its rows.
  static constexpr bool views_rows = std::same_as<RowsOf<ElementOf<D>>, ElementOf<D>>;

 public:
  using Element = std::conditional_t<views_rows, Row, Owned<Row>>;
  static constexpr bool is_batched = false;

  using StepDataset<UnbatchDataset, D>::StepDataset;

  class Iterator {
   public:
    Iterator(const UnbatchDataset& dataset, std::uint64_t epoch) : upstream_(dataset.dataset_.iterate(epoch)) {}

    bool next(Element& element) {
      while (row_ == rows_) {
        if (!upstream_.next(batch_)) return false;
        rows_ = row_count(batch_);
        row_ = 0;
      }
      if constexpr (views_rows)
        element = row_of(batch_, row_++);
      else
        Owning<Row>::copy(element, row_of(batch_, row_++));
      return true;
    }

   private:
    IteratorOf<D> upstream_;
    ElementOf<D> batch_{};
    std::size_t rows_ = 0;
    std::size_t row_ = 0;
  };

  /// However many batches there are, their rows are only counted when they are made.
  [[nodiscard]] Cardinality cardinality() const {
    const Cardinality batches = this->dataset_.cardinality();
    return batches == Cardinality::known(0) || batches.is_infinite() ? batches : Cardinality::unknown();
  }
};

/// Makes an element of every row of every batch: tensors with one axis less, of rank 0 for batches of numbers. The rows
/// are copies, or views where the batches are nothing but views. Throws, while iterating, ShapeMismatch for an array
/// without axes, and for a batch whose parts differ in their number of rows.
[[nodiscard]] inline auto unbatch() {
  return Pipe{[]<Dataset D>(D dataset) {
    constexpr bool has_rows = HasRows<ElementOf<D>>;
    if constexpr (has_rows)
      return UnbatchDataset<D>{std::move(dataset)};
    else
      static_assert(has_rows, "unbatch: elements must be Tensors, TensorViews, or Examples, tuples or arrays of these");
  }};
}

}  // namespace dist::data
