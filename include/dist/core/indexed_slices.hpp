#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

#include <dist/core/error.hpp>
#include <dist/core/tensor.hpp>

namespace dist {

namespace detail {
/// Throws InvalidArgument if the row `index` is out of range for an array of shape `dense_shape`.
inline void require_row(std::int64_t index, const Shape& dense_shape) {
  if (index < 0 || static_cast<std::uint64_t>(index) >= dense_shape[0])
    throw InvalidArgument("An index of indexed slices is out of range",
                          concat("index ", index, " of an array with ", dense_shape[0], " rows"),
                          "Give indices from 0 to the number of rows - 1");
}
}  // namespace detail

/// A non-owning view of some rows of a large, mostly zero array, such as the gradient of an embedding: row `i` of
/// `values` is row `indices[i]` of an array of shape `dense_shape`. Rows of repeated indices add up; the order is kept
/// (spec H10, P14).
template <class T>
class IndexedSlicesView {
 public:
  using Element = T;

  /// Throws ShapeMismatch unless `values` has one row of `dense_shape` for each index, and InvalidArgument if an index
  /// is out of range for `dense_shape`.
  IndexedSlicesView(std::span<const std::int64_t> indices, TensorView<const T> values, Shape dense_shape)
      : indices_(indices), values_(values), dense_shape_(dense_shape) {
    if (dense_shape.rank() == 0 || values.shape() != dense_shape.with_rows(indices.size()))
      throw ShapeMismatch("Indexed slices do not fit together",
                          concat(indices.size(), " indices and values of shape ", to_string(values.shape()),
                                 " for an array of shape ", to_string(dense_shape)),
                          "Give one row of values, of the array's row shape, for each index");
    for (const std::int64_t index : indices) detail::require_row(index, dense_shape);
  }

  /// The indices of the rows in the array, possibly repeated.
  [[nodiscard]] std::span<const std::int64_t> indices() const noexcept { return indices_; }
  /// The rows: shape {number of indices, row shape of the array}.
  [[nodiscard]] TensorView<const T> values() const noexcept { return values_; }
  /// The shape of the array.
  [[nodiscard]] const Shape& dense_shape() const noexcept { return dense_shape_; }
  /// Number of rows, including repeated indices.
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
  /// Allocates `rows` rows of an array of shape `dense_shape`, to be filled in. Throws ShapeMismatch if the shape is a
  /// scalar, InvalidArgument if the number of elements overflows.
  IndexedSlices(std::size_t rows, Shape dense_shape)
      : indices_(Shape{rows}), values_(rows_of(dense_shape, rows)), dense_shape_(dense_shape) {}
  /// Row `i` of `values` belongs to index `i`: `IndexedSlices<float>{{3, 0}, {{2, 2}, {1, 2, 3, 4}}, {10, 2}}`. Throws
  /// the errors of IndexedSlicesView.
  IndexedSlices(std::initializer_list<std::int64_t> indices, const Tensor<T>& values, Shape dense_shape)
      : IndexedSlices(IndexedSlicesView<T>{{indices.begin(), indices.size()}, values, dense_shape}) {}
  /// Copies the slices.
  explicit IndexedSlices(const IndexedSlicesView<T>& view) : IndexedSlices(view.rows(), view.dense_shape()) {
    for (std::size_t row = 0; row < view.rows(); ++row) indices_[row] = view.indices()[row];
    for (std::size_t i = 0; i < values_.size(); ++i) values_[i] = view.values().data()[i];
  }

  /// The indices of the rows in the array, to fill in.
  [[nodiscard]] std::span<std::int64_t> indices() noexcept { return indices_.elements(); }
  /// The indices of the rows in the array, possibly repeated.
  [[nodiscard]] std::span<const std::int64_t> indices() const noexcept { return indices_.elements(); }
  /// The rows, to fill in.
  [[nodiscard]] TensorView<T> values() noexcept { return values_; }
  /// The rows: shape {number of indices, row shape of the array}.
  [[nodiscard]] TensorView<const T> values() const noexcept { return values_; }
  /// The shape of the array.
  [[nodiscard]] const Shape& dense_shape() const noexcept { return dense_shape_; }
  /// Number of rows, including repeated indices.
  [[nodiscard]] std::size_t rows() const noexcept { return indices_.size(); }

  /// Throws InvalidArgument if an index is out of range for `dense_shape`.
  [[nodiscard]] IndexedSlicesView<T> view() const { return {indices(), values(), dense_shape_}; }

  /// True if both have the same rows in the same order and the same dense shape.
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

/// Formats slices as "rows [3, 0] of [10, 2]: [[1, 2], [3, 4]]".
template <class T>
[[nodiscard]] std::string to_string(const IndexedSlicesView<T>& slices) {
  const TensorView<const std::int64_t> indices{slices.indices(), Shape{slices.rows()}};
  return concat("rows ", to_string(indices), " of ", to_string(slices.dense_shape()), ": ", to_string(slices.values()));
}
/// Formats slices as "rows [3, 0] of [10, 2]: [[1, 2], [3, 4]]".
template <class T>
[[nodiscard]] std::string to_string(const IndexedSlices<T>& slices) {
  return to_string(slices.view());
}

}  // namespace dist
