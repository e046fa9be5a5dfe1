/// Division of batches into rows, and stacking of elements into batches.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstring>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>

#include <dist/core/config.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/core/shape.hpp>
#include <dist/core/tensor.hpp>
#include <dist/core/type_traits.hpp>
#include <dist/data/example.hpp>

namespace dist::data {

/// Defines how to divide a batch into rows. A specialisation has the types `View` (several rows) and `Row` (one row,
/// with one axis less) and the functions `count(batch)`, `view(batch, first, count)` and `row(batch, index)`.
template <class Batch>
struct Rowwise;

/// A batch whose rows can be divided: a Tensor, a TensorView, or an Example, std::tuple, std::pair or std::array of
/// these (spec I30).
template <class Batch>
concept HasRows = requires {
  typename Rowwise<Batch>::View;
};

/// The type of several rows of a batch.
template <HasRows Batch>
using RowsOf = typename Rowwise<Batch>::View;
/// The type of one row of a batch, with one axis less.
template <HasRows Batch>
using RowOf = typename Rowwise<Batch>::Row;
/// The parameter type of a replica function for batches of `D`: `[](auto& replica, const data::BatchOf<D>& batch)`. It
/// consists of views; a strategy with one replica may pass the whole batch, which converts to them.
template <class D>
using BatchOf = RowsOf<typename std::remove_cvref_t<D>::Element>;

/// Returns the number of rows of a batch. Throws ShapeMismatch if an array has no axes, or if the parts differ in their
/// number of rows.
template <HasRows Batch>
[[nodiscard]] std::size_t row_count(const Batch& batch) {
  return Rowwise<Batch>::count(batch);
}
/// Returns views of `count` rows, starting at `first`.
template <HasRows Batch>
[[nodiscard]] RowsOf<Batch> rows_of(const Batch& batch, std::size_t first, std::size_t count) {
  return Rowwise<Batch>::view(batch, first, count);
}
/// Returns a view of row `index`, with one axis less.
template <HasRows Batch>
[[nodiscard]] RowOf<Batch> row_of(const Batch& batch, std::size_t index) {
  return Rowwise<Batch>::row(batch, index);
}

namespace detail {

/// Returns the number of rows of an array. Throws ShapeMismatch if it is a scalar.
[[nodiscard]] std::size_t rows_in(const Shape& shape);
/// Returns the common number of rows of all parts of a batch. Throws ShapeMismatch if they differ.
[[nodiscard]] std::size_t rows_in_all(std::span<const std::size_t> parts, bool are_features_and_labels);

}  // namespace detail

/// The rows of a view along its first axis.
template <class T>
struct Rowwise<TensorView<T>> {
  using View = TensorView<const T>;
  using Row = View;

  [[nodiscard]] static std::size_t count(const View& batch) { return detail::rows_in(batch.shape()); }
  [[nodiscard]] static View view(const View& batch, std::size_t first, std::size_t count) {
    return batch.rows(first, count);
  }
  [[nodiscard]] static Row row(const View& batch, std::size_t index) { return batch.row(index); }
};

/// The rows of a tensor, as views.
template <class T>
struct Rowwise<Tensor<T>> : Rowwise<TensorView<const T>> {};

namespace detail {

template <class Batch>
using ViewIn = typename Rowwise<Batch>::View;
template <class Batch>
using RowIn = typename Rowwise<Batch>::Row;

/// A structure whose parts have rows.
template <class Batch>
concept HasRowwiseParts = HasParts<Batch> && requires {
  typename WithParts<Batch, ViewIn>;
};

}  // namespace detail

/// The rows of all parts.
template <detail::HasRowwiseParts Batch>
struct Rowwise<Batch> {
  using View = detail::WithParts<Batch, detail::ViewIn>;
  using Row = detail::WithParts<Batch, detail::RowIn>;

  [[nodiscard]] static std::size_t count(const Batch& batch) {
    return detail::over_parts<Batch>([&]<std::size_t... I>() {
      const std::size_t counts[] = {row_count(detail::part_of<I>(batch))...};
      return detail::rows_in_all(counts, dist::detail::is_specialization<Batch, Example>);
    });
  }
  [[nodiscard]] static View view(const Batch& batch, std::size_t first, std::size_t count) {
    return detail::over_parts<Batch>([&]<std::size_t... I>() {
      return View{rows_of(detail::part_of<I>(batch), first, count)...};
    });
  }
  [[nodiscard]] static Row row(const Batch& batch, std::size_t index) {
    return detail::over_parts<Batch>([&]<std::size_t... I>() {
      return Row{row_of(detail::part_of<I>(batch), index)...};
    });
  }
};

/// Defines how to stack elements into a batch. A specialisation has the type `Batch` and four functions:
/// `allocate(batch, like, rows)` makes room for `rows` elements like `like`, reusing memory; `place(batch, row,
/// element)` copies an element to a row, and throws ShapeMismatch if its shape differs; `grow(batch, rows)` makes room
/// for more rows; `trim(batch, rows)` keeps only the first rows.
template <class Element>
struct Stack;

/// An element that can be batched: a number, a Tensor, a TensorView, or an Example, std::tuple, std::pair or std::array
/// of these.
template <class Element>
concept Stackable = requires {
  typename Stack<Element>::Batch;
};

/// The type of a batch of `Element`s: a Tensor for numbers, one with one more axis for arrays, the same structure of
/// these for structures.
template <Stackable Element>
using Batched = typename Stack<Element>::Batch;

namespace detail {

/// Returns the shape of `rows` rows, with `element_bytes` bytes per element. Throws InvalidArgument if it exceeds the
/// address space.
[[nodiscard]] Shape shape_of_rows(const Shape& row, std::size_t rows, std::size_t element_bytes);
/// Copies an array to a row of a batch. Throws ShapeMismatch if its shape differs.
void place_row(void* batch, const Shape& batch_shape, std::size_t row, const void* elements, const Shape& shape,
               std::size_t element_bytes);

/// The rows of a tensor. Not inlined: pipelines call these once per batch.
template <class T>
struct StackRows {
  using Batch = Tensor<T>;

  [[gnu::noinline]] static void resize(Batch& batch, const Shape& row, std::size_t rows) {
    batch.resize(shape_of_rows(row, rows, sizeof(T)));
  }
  [[gnu::noinline]] static void grow(Batch& batch, std::size_t rows) {
    Batch larger;
    resize(larger, batch.shape().row(), rows);
    if (batch.size() > 0) std::memcpy(larger.data(), batch.data(), batch.size() * sizeof(T));
    batch = std::move(larger);
  }
  static void trim(Batch& batch, std::size_t rows) { resize(batch, batch.shape().row(), rows); }
};

}  // namespace detail

/// Stacks numbers into a tensor of rank 1.
template <Reducible T>
struct Stack<T> : detail::StackRows<T> {
  static void allocate(Tensor<T>& batch, T, std::size_t rows) { detail::StackRows<T>::resize(batch, Shape{}, rows); }
  static void place(Tensor<T>& batch, std::size_t row, T element) {
    detail::place_row(batch.data(), batch.shape(), row, &element, Shape{}, sizeof(T));
  }
};

/// Stacks arrays along a new outermost axis.
template <class T>
struct Stack<TensorView<T>> : detail::StackRows<std::remove_const_t<T>> {
  using typename detail::StackRows<std::remove_const_t<T>>::Batch;

  static void allocate(Batch& batch, const TensorView<T>& like, std::size_t rows) {
    Stack::resize(batch, like.shape(), rows);
  }
  static void place(Batch& batch, std::size_t row, const TensorView<T>& element) {
    detail::place_row(batch.data(), batch.shape(), row, element.data(), element.shape(), sizeof(T));
  }
};

template <class T>
struct Stack<Tensor<T>> : Stack<TensorView<const T>> {};

namespace detail {

template <class Element>
using BatchIn = typename Stack<Element>::Batch;

/// A structure whose parts are stacked.
template <class Element>
concept HasStackedParts = HasParts<Element> && requires {
  typename WithParts<Element, BatchIn>;
};

}  // namespace detail

/// Stacks each part separately.
template <detail::HasStackedParts Element>
struct Stack<Element> {
  using Batch = detail::WithParts<Element, detail::BatchIn>;

  static void allocate(Batch& batch, const Element& like, std::size_t rows) {
    each_part([&]<std::size_t I, class Part>() {
      Part::allocate(detail::part_of<I>(batch), detail::part_of<I>(like), rows);
    });
  }
  static void place(Batch& batch, std::size_t row, const Element& element) {
    each_part(
        [&]<std::size_t I, class Part>() { Part::place(detail::part_of<I>(batch), row, detail::part_of<I>(element)); });
  }
  static void grow(Batch& batch, std::size_t rows) {
    each_part([&]<std::size_t I, class Part>() { Part::grow(detail::part_of<I>(batch), rows); });
  }
  static void trim(Batch& batch, std::size_t rows) {
    each_part([&]<std::size_t I, class Part>() { Part::trim(detail::part_of<I>(batch), rows); });
  }

 private:
  static void each_part(auto&& visit) {
    detail::over_parts<Element>([&]<std::size_t... I>() {
      (visit.template operator()<I, Stack<std::tuple_element_t<I, detail::Parts<Element>>>>(), ...);
    });
  }
};

namespace detail {

/// Returns the capacity after `capacity`, up to `most`. Throws InvalidArgument if it is `most` already.
[[nodiscard]] std::size_t larger_capacity(std::size_t capacity, std::size_t most);

/// Fills rows `first` to `first + count - 1` of the tensors that `batch` owns with one bits: NaN, -1, the largest
/// unsigned integer.
template <class Batch>
void poison_rows(Batch& batch, std::size_t first, std::size_t count) {
  if constexpr (HasParts<Batch>) {
    over_parts<Batch>([&]<std::size_t... I>() { (poison_rows(part_of<I>(batch), first, count), ...); });
  } else if constexpr (dist::detail::is_specialization<Batch, Tensor>) {
    using T = typename Batch::Element;
    if constexpr (!std::same_as<T, bool>) {
      const TensorView<T> rows = batch.view().rows(first, count);
      if (rows.size() > 0) std::memset(static_cast<void*>(rows.data()), 0xFF, rows.size() * sizeof(T));
    }
  }
}

inline constexpr bool poisons_batches = DIST_CONTRACT_LEVEL >= 2;

}  // namespace detail

}  // namespace dist::data

#ifndef DIST_COMPILED
#include <dist/data/rows.ipp>
#endif
