#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <tuple>
#include <utility>

#include <dist/core/tensor.hpp>
#include <dist/data/dataset.hpp>
#include <dist/data/example.hpp>
#include <dist/data/rows.hpp>

namespace dist::data {

namespace detail {

/// How a row leaves its batch: `take(row, batch, index)` copies a row of a batch that owns its elements, and views one
/// of a batch that is itself a view.
template <class Batch>
struct RowTaker;

template <class T>
struct RowTaker<Tensor<T>> {
  using Row = Tensor<T>;
  static void take(Row& row, const Tensor<T>& batch, std::size_t index) {
    const TensorView<const T> from = batch.view().row(index);
    row.resize(from.shape());
    if (from.size() > 0) std::memcpy(row.data(), from.data(), from.size() * sizeof(T));
  }
};

template <class T>
struct RowTaker<TensorView<T>> {
  using Row = TensorView<T>;
  static void take(Row& row, const TensorView<T>& batch, std::size_t index) { row = batch.row(index); }
};

template <class X, class Y>
struct RowTaker<Example<X, Y>> {
  using Row = Example<typename RowTaker<X>::Row, typename RowTaker<Y>::Row>;
  static void take(Row& row, const Example<X, Y>& batch, std::size_t index) {
    RowTaker<X>::take(row.x, batch.x, index);
    RowTaker<Y>::take(row.y, batch.y, index);
  }
};

/// What std::get takes apart is taken part by part.
template <class Batch, class RowType>
struct RowTakerOfParts {
  using Row = RowType;
  static void take(Row& row, const Batch& batch, std::size_t index) {
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      (RowTaker<std::tuple_element_t<I, Batch>>::take(std::get<I>(row), std::get<I>(batch), index), ...);
    }
    (std::make_index_sequence<std::tuple_size_v<Batch>>{});
  }
};
template <class... Ts>
struct RowTaker<std::tuple<Ts...>> : RowTakerOfParts<std::tuple<Ts...>, std::tuple<typename RowTaker<Ts>::Row...>> {};
template <class A, class B>
struct RowTaker<std::pair<A, B>>
    : RowTakerOfParts<std::pair<A, B>, std::pair<typename RowTaker<A>::Row, typename RowTaker<B>::Row>> {};
template <class T, std::size_t Size>
struct RowTaker<std::array<T, Size>>
    : RowTakerOfParts<std::array<T, Size>, std::array<typename RowTaker<T>::Row, Size>> {};

}  // namespace detail

/// The rows of the elements of `D`. Made by `unbatch`.
template <Dataset D>
class UnbatchDataset : public DatasetRange<UnbatchDataset<D>> {
  using Rows = detail::RowTaker<ElementOf<D>>;

 public:
  using Element = typename Rows::Row;

  explicit UnbatchDataset(D dataset) : dataset_(std::move(dataset)) {}

  class Iterator {
   public:
    Iterator(const UnbatchDataset& dataset, std::uint64_t epoch) : upstream_(dataset.dataset_.iterate(epoch)) {}

    bool next(Element& element) {
      while (row_ == rows_) {
        if (!upstream_.next(batch_)) return false;
        rows_ = row_count(batch_);
        row_ = 0;
      }
      Rows::take(element, batch_, row_++);
      return true;
    }

   private:
    IteratorOf<D> upstream_;
    ElementOf<D> batch_{};
    std::size_t rows_ = 0;
    std::size_t row_ = 0;
  };

  [[nodiscard]] Iterator iterate(std::uint64_t epoch) const { return Iterator{*this, epoch}; }
  /// However many batches there are, their rows are only counted when they are made.
  [[nodiscard]] Cardinality cardinality() const {
    const Cardinality batches = dataset_.cardinality();
    return batches == Cardinality::known(0) || batches.is_infinite() ? batches : Cardinality::unknown();
  }
  [[nodiscard]] D& upstream() noexcept { return dataset_; }

 private:
  D dataset_;
};

/// Makes an element of every row of every batch: tensors with one axis less, of rank 0 for batches of numbers. The rows
/// are copies, or views where the batches are views. Throws, while iterating, ShapeMismatch for a batch without rows,
/// and for one whose parts differ in their number.
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
