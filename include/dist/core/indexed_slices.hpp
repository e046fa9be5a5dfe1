#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <utility>

#include <dist/core/error.hpp>
#include <dist/core/tensor.hpp>

namespace dist {

namespace detail {
/// Throws InvalidArgument for an index of indexed slices that an array of shape `dense_shape` does not have.
inline void require_row(std::int64_t index, const Shape& dense_shape) {
  if (index < 0 || static_cast<std::uint64_t>(index) >= dense_shape[0])
    throw InvalidArgument("An index of indexed slices is out of range",
                          concat("index ", index, " of an array with ", dense_shape[0], " rows"),
                          "Give indices from 0 to the number of rows - 1");
}
}  // namespace detail

/// Rows of a large array of which most are zero, such as the gradient of an embedding: `values` row `i` belongs to row
/// `indices[i]` of an array of shape `dense_shape`. Indices may repeat, then their rows add up; their order is kept
/// (spec H10, P14). Does not own what it shows.
template <class T>
class IndexedSlicesView {
 public:
  using Element = T;

  /// Throws ShapeMismatch unless there is one row of values for each index, of the shape of a row of `dense_shape`, and
  /// InvalidArgument for an index that `dense_shape` does not have.
  IndexedSlicesView(std::span<const std::int64_t> indices, TensorView<const T> values, Shape dense_shape)
      : indices_(indices), values_(values), dense_shape_(dense_shape) {
    if (dense_shape.rank() == 0 || values.shape() != dense_shape.with_rows(indices.size()))
      throw ShapeMismatch("Indexed slices do not fit together",
                          concat(indices.size(), " indices and values of shape ", to_string(values.shape()),
                                 " for an array of shape ", to_string(dense_shape)),
                          "Give one row of values, of the array's row shape, for each index");
    for (const std::int64_t index : indices) detail::require_row(index, dense_shape);
  }

  [[nodiscard]] std::span<const std::int64_t> indices() const noexcept { return indices_; }
  [[nodiscard]] TensorView<const T> values() const noexcept { return values_; }
  [[nodiscard]] const Shape& dense_shape() const noexcept { return dense_shape_; }
  /// How many rows are given, repetitions included.
  [[nodiscard]] std::size_t rows() const noexcept { return indices_.size(); }

 private:
  std::span<const std::int64_t> indices_;
  TensorView<const T> values_;
  Shape dense_shape_;
};

/// Indexed slices that own their indices and values.
template <class T>
class IndexedSlices {
 public:
  using Element = T;

  /// No rows, of an array without rows.
  IndexedSlices() : IndexedSlices(0, Shape{0}) {}
  /// Room for `rows` rows of an array of shape `dense_shape`, to be filled in. Throws ShapeMismatch for a scalar shape,
  /// InvalidArgument for more elements than can be counted.
  IndexedSlices(std::size_t rows, Shape dense_shape)
      : indices_(Shape{rows}), values_(rows_of(dense_shape, rows)), dense_shape_(dense_shape) {}
  /// Row `i` of `values` for each index `i`: `IndexedSlices<float>{{3, 0}, {{2, 2}, {1, 2, 3, 4}}, {10, 2}}`. Throws as
  /// IndexedSlicesView does.
  IndexedSlices(std::initializer_list<std::int64_t> indices, const Tensor<T>& values, Shape dense_shape)
      : IndexedSlices(IndexedSlicesView<T>{{indices.begin(), indices.size()}, values, dense_shape}) {}
  /// Copies what `view` shows.
  explicit IndexedSlices(const IndexedSlicesView<T>& view) : IndexedSlices(view.rows(), view.dense_shape()) {
    for (std::size_t row = 0; row < view.rows(); ++row) indices_[row] = view.indices()[row];
    for (std::size_t i = 0; i < values_.size(); ++i) values_[i] = view.values().data()[i];
  }

  [[nodiscard]] std::span<std::int64_t> indices() noexcept { return indices_.elements(); }
  [[nodiscard]] std::span<const std::int64_t> indices() const noexcept { return indices_.elements(); }
  [[nodiscard]] TensorView<T> values() noexcept { return values_; }
  [[nodiscard]] TensorView<const T> values() const noexcept { return values_; }
  [[nodiscard]] const Shape& dense_shape() const noexcept { return dense_shape_; }
  [[nodiscard]] std::size_t rows() const noexcept { return indices_.size(); }

  /// Throws InvalidArgument for an index that `dense_shape` does not have.
  [[nodiscard]] IndexedSlicesView<T> view() const { return {indices(), values(), dense_shape_}; }

  /// The same rows in the same order, of arrays of the same shape.
  [[nodiscard]] friend bool operator==(const IndexedSlices&, const IndexedSlices&) = default;

 private:
  static Shape rows_of(const Shape& dense_shape, std::size_t rows) {
    if (dense_shape.rank() == 0)
      throw ShapeMismatch("A scalar has no slices", "an array of rank 1 or more was expected",
                          "Give the shape of an array with an outermost axis");
    return dense_shape.row().stacked(rows);
  }

  Tensor<std::int64_t> indices_;
  Tensor<T> values_;
  Shape dense_shape_;
};

/// "rows [3, 0] of [10, 2]: [[1, 2], [3, 4]]"
template <class T>
[[nodiscard]] std::string to_string(const IndexedSlicesView<T>& slices) {
  const TensorView<const std::int64_t> indices{slices.indices(), Shape{slices.rows()}};
  return concat("rows ", to_string(indices), " of ", to_string(slices.dense_shape()), ": ", to_string(slices.values()));
}
template <class T>
[[nodiscard]] std::string to_string(const IndexedSlices<T>& slices) {
  return to_string(slices.view());
}

}  // namespace dist
