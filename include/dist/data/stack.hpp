#pragma once

#include <array>
#include <cstddef>
#include <cstring>
#include <limits>
#include <tuple>
#include <type_traits>
#include <utility>

#include <dist/core/error.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/core/tensor.hpp>
#include <dist/data/example.hpp>

namespace dist::data {

/// How elements of one type become a batch. A specialisation has the type `Batch` and four functions:
/// `allocate(batch, like, rows)` gives the batch room for `rows` elements such as `like`, reusing its memory;
/// `place(batch, row, element)` copies an element to its row and throws ShapeMismatch when its shape differs;
/// `grow(batch, rows)` gives it room for more, and keeps those that it has; `trim(batch, rows)` keeps the first
/// rows only.
template <class Element>
struct Stack;

/// An element that can be batched: a number, a Tensor, a TensorView, and an Example, std::tuple, std::pair or
/// std::array of such.
template <class Element>
concept Stackable = requires {
  typename Stack<Element>::Batch;
};

/// What a batch of `Element`s is: a Tensor of numbers for numbers, with one more axis for arrays, the same structure of
/// these for structures.
template <Stackable Element>
using Batched = typename Stack<Element>::Batch;

namespace detail {

/// Copies `count` elements of type `T`, one after another: the common part of every kind of row.
template <class T>
struct StackRows {
  using Batch = Tensor<T>;

  static void allocate(Batch& batch, const Shape& row, std::size_t rows) {
    const std::size_t elements = row.elements() == 0 ? 1 : row.elements();
    if (rows > std::numeric_limits<std::ptrdiff_t>::max() / sizeof(T) / elements)
      throw InvalidArgument("A batch is larger than any memory", concat(rows, " rows of shape ", to_string(row)),
                            "Make the batch smaller");
    batch.resize(row.stacked(rows));
  }

  static void place(Batch& batch, std::size_t row, const T* elements, const Shape& shape) {
    const Shape expected = batch.shape().row();
    if (shape != expected)
      throw ShapeMismatch(
          "Elements of one batch differ in shape",
          concat("element ", row, " has shape ", to_string(shape), ", those before it ", to_string(expected)),
          "Bring them to one shape with map, or use batches of one element");
    const std::size_t count = expected.elements();
    if (count > 0) std::memcpy(batch.data() + row * count, elements, count * sizeof(T));
  }

  static void grow(Batch& batch, std::size_t rows) {
    Batch larger;
    allocate(larger, batch.shape().row(), rows);
    if (batch.size() > 0) std::memcpy(larger.data(), batch.data(), batch.size() * sizeof(T));
    batch = std::move(larger);
  }

  static void trim(Batch& batch, std::size_t rows) { batch.resize(batch.shape().with_rows(rows)); }
};

}  // namespace detail

/// Numbers become a tensor of rank 1.
template <Reducible T>
struct Stack<T> : detail::StackRows<T> {
  static void allocate(Tensor<T>& batch, T, std::size_t rows) { detail::StackRows<T>::allocate(batch, Shape{}, rows); }
  static void place(Tensor<T>& batch, std::size_t row, T element) {
    detail::StackRows<T>::place(batch, row, &element, Shape{});
  }
};

/// Arrays become an array with one more axis, the outermost.
template <class T>
struct Stack<TensorView<T>> : detail::StackRows<std::remove_const_t<T>> {
  using Rows = detail::StackRows<std::remove_const_t<T>>;
  using Batch = typename Rows::Batch;

  static void allocate(Batch& batch, TensorView<T> like, std::size_t rows) {
    Rows::allocate(batch, like.shape(), rows);
  }
  static void place(Batch& batch, std::size_t row, TensorView<T> element) {
    Rows::place(batch, row, element.data(), element.shape());
  }
};

template <class T>
struct Stack<Tensor<T>> : detail::StackRows<T> {
  using Rows = detail::StackRows<T>;

  static void allocate(Tensor<T>& batch, const Tensor<T>& like, std::size_t rows) {
    Rows::allocate(batch, like.shape(), rows);
  }
  static void place(Tensor<T>& batch, std::size_t row, const Tensor<T>& element) {
    Rows::place(batch, row, element.data(), element.shape());
  }
};

namespace detail {

/// The parts of what std::get takes apart, and of an Example, are stacked apart.
template <class Element, class BatchType>
struct StackParts {
  using Batch = BatchType;

  static void allocate(Batch& batch, const Element& like, std::size_t rows) {
    each_part([&]<std::size_t I, class Part>() { Part::allocate(part_of<I>(batch), part_of<I>(like), rows); });
  }
  static void place(Batch& batch, std::size_t row, const Element& element) {
    each_part([&]<std::size_t I, class Part>() { Part::place(part_of<I>(batch), row, part_of<I>(element)); });
  }
  static void grow(Batch& batch, std::size_t rows) {
    each_part([&]<std::size_t I, class Part>() { Part::grow(part_of<I>(batch), rows); });
  }
  static void trim(Batch& batch, std::size_t rows) {
    each_part([&]<std::size_t I, class Part>() { Part::trim(part_of<I>(batch), rows); });
  }

 private:
  template <class Fn>
  static void each_part(Fn fn) {
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      (fn.template operator()<I, Stack<std::tuple_element_t<I, Parts<Element>>>>(), ...);
    }
    (std::make_index_sequence<std::tuple_size_v<Parts<Element>>>{});
  }
};

}  // namespace detail

template <Stackable X, Stackable Y>
struct Stack<Example<X, Y>> : detail::StackParts<Example<X, Y>, Example<Batched<X>, Batched<Y>>> {};
template <Stackable First, Stackable... Rest>
struct Stack<std::tuple<First, Rest...>>
    : detail::StackParts<std::tuple<First, Rest...>, std::tuple<Batched<First>, Batched<Rest>...>> {};
template <Stackable A, Stackable B>
struct Stack<std::pair<A, B>> : detail::StackParts<std::pair<A, B>, std::pair<Batched<A>, Batched<B>>> {};
template <Stackable T, std::size_t Size>
  requires(Size > 0)
struct Stack<std::array<T, Size>> : detail::StackParts<std::array<T, Size>, std::array<Batched<T>, Size>> {};

}  // namespace dist::data
