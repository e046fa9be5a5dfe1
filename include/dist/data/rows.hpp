#pragma once

#include <cstddef>
#include <utility>

#include <dist/core/error.hpp>
#include <dist/core/tensor.hpp>
#include <dist/data/example.hpp>

namespace dist::data {

/// How many rows a batch has. Throws ShapeMismatch for an array without axes, and for an example whose
/// features and labels differ in number.
template <class T>
[[nodiscard]] std::size_t row_count(TensorView<T> batch) {
  if (batch.shape().rank() == 0)
    throw ShapeMismatch("A scalar has no rows",
                        "an array of rank 1 or more was expected, its first axis counts the rows",
                        "Give the array an outermost axis");
  return batch.shape()[0];
}
template <class T>
[[nodiscard]] std::size_t row_count(const Tensor<T>& batch) {
  return row_count(batch.view());
}
template <class X, class Y>
[[nodiscard]] std::size_t row_count(const Example<X, Y>& batch) {
  const std::size_t features = row_count(batch.x);
  const std::size_t labels = row_count(batch.y);
  if (features != labels)
    throw ShapeMismatch("Features and labels differ in number", text(features, " features, ", labels, " labels"),
                        "Give one label for each feature");
  return features;
}

/// `count` rows from `first` on, as views of the batch.
template <class T>
[[nodiscard]] TensorView<const T> rows_of(TensorView<T> batch, std::size_t first, std::size_t count) {
  return batch.rows(first, count);
}
template <class T>
[[nodiscard]] TensorView<const T> rows_of(const Tensor<T>& batch, std::size_t first, std::size_t count) {
  return batch.view().rows(first, count);
}
template <class X, class Y>
[[nodiscard]] auto rows_of(const Example<X, Y>& batch, std::size_t first, std::size_t count)
    -> Example<decltype(rows_of(batch.x, first, count)), decltype(rows_of(batch.y, first, count))> {
  return {rows_of(batch.x, first, count), rows_of(batch.y, first, count)};
}

/// Row `index`, as a view of the batch with one axis less.
template <class T>
[[nodiscard]] TensorView<const T> row_of(const Tensor<T>& batch, std::size_t index) {
  return batch.view().row(index);
}
template <class X, class Y>
[[nodiscard]] auto row_of(const Example<X, Y>& batch, std::size_t index)
    -> Example<decltype(row_of(batch.x, index)), decltype(row_of(batch.y, index))> {
  return {row_of(batch.x, index), row_of(batch.y, index)};
}

/// A batch whose rows can be divided.
template <class Batch>
concept HasRows = requires(const Batch& batch, std::size_t index) {
  row_count(batch);
  rows_of(batch, index, index);
};

template <HasRows Batch>
using RowsOf = decltype(rows_of(std::declval<const Batch&>(), std::size_t{}, std::size_t{}));
template <class Batch>
using RowOf = decltype(row_of(std::declval<const Batch&>(), std::size_t{}));

}  // namespace dist::data
