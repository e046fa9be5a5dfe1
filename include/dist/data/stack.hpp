#pragma once

#include <concepts>
#include <cstddef>
#include <cstring>
#include <limits>
#include <type_traits>

#include <dist/core/error.hpp>
#include <dist/core/tensor.hpp>
#include <dist/data/example.hpp>

namespace dist::data {

/// How elements of one type become a batch. A specialisation has the type `Batch` and three functions:
/// `allocate(batch, like, rows)` gives the batch room for `rows` elements such as `like`, reusing its memory;
/// `place(batch, row, element)` copies an element to its row and throws ShapeMismatch when its shape differs;
/// `trim(batch, rows)` keeps the first rows only.
template <class Element>
struct Stack;

namespace detail {

/// Copies `count` elements of type `T` behind each other: the common part of every kind of row.
template <class T>
struct StackRows {
  using Batch = Tensor<T>;

  static void allocate(Batch& batch, const Shape& row, std::size_t rows) {
    const std::size_t elements = row.elements() == 0 ? 1 : row.elements();
    if (rows > std::numeric_limits<std::ptrdiff_t>::max() / sizeof(T) / elements)
      throw InvalidArgument("A batch is larger than any memory", text(rows, " rows of shape ", to_string(row)),
                            "Make the batch smaller");
    batch.resize(row.stacked(rows));
  }

  static void place(Batch& batch, std::size_t row, const T* elements, const Shape& shape) {
    const Shape expected = batch.shape().row();
    if (shape != expected)
      throw ShapeMismatch(
          "Elements of one batch differ in shape",
          text("element ", row, " has shape ", to_string(shape), ", those before it ", to_string(expected)),
          "Bring them to one shape with map, or use batches of one element");
    const std::size_t count = expected.elements();
    if (count > 0) std::memcpy(batch.data() + row * count, elements, count * sizeof(T));
  }

  static void trim(Batch& batch, std::size_t rows) { batch.resize(batch.shape().with_rows(rows)); }
};

}  // namespace detail

/// Numbers become a tensor of rank 1.
template <class T>
  requires std::is_arithmetic_v<T>
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

/// Features and labels are stacked apart.
template <class X, class Y>
struct Stack<Example<X, Y>> {
  using Batch = Example<typename Stack<X>::Batch, typename Stack<Y>::Batch>;

  static void allocate(Batch& batch, const Example<X, Y>& like, std::size_t rows) {
    Stack<X>::allocate(batch.x, like.x, rows);
    Stack<Y>::allocate(batch.y, like.y, rows);
  }
  static void place(Batch& batch, std::size_t row, const Example<X, Y>& element) {
    Stack<X>::place(batch.x, row, element.x);
    Stack<Y>::place(batch.y, row, element.y);
  }
  static void trim(Batch& batch, std::size_t rows) {
    Stack<X>::trim(batch.x, rows);
    Stack<Y>::trim(batch.y, rows);
  }
};

/// An element that can be batched.
template <class Element>
concept Stackable = requires {
  typename Stack<Element>::Batch;
};

/// What a batch of `Element`s is: a Tensor of numbers for numbers, with one more axis for arrays, an Example
/// of these for examples.
template <Stackable Element>
using Batched = typename Stack<Element>::Batch;

}  // namespace dist::data
