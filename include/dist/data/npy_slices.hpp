#pragma once

#include <cstddef>
#include <string>
#include <utility>

#include <dist/core/error.hpp>
#include <dist/core/shape.hpp>
#include <dist/core/tensor.hpp>
#include <dist/data/tensor_slices.hpp>
#include <dist/io/npy.hpp>

namespace dist::data {

namespace detail {

/// Throws FileError if the array of `file` is a scalar.
inline void check_rows(const std::string& file, const Shape& shape) {
  if (shape.rank() == 0)
    throw FileError(file, "holds no rows", "its array is a scalar",
                    "Save an array whose first axis counts the examples");
}
/// Throws FileError if an array is a scalar, or if the numbers of rows differ.
inline void check_rows(const std::string& x_file, const Shape& x, const std::string& y_file, const Shape& y) {
  check_rows(x_file, x);
  check_rows(y_file, y);
  if (x[0] != y[0])
    throw FileError(y_file, concat("does not fit '", x_file, "'"), concat(y[0], " labels, ", x[0], " features"),
                    "Give arrays whose first axes agree");
}

}  // namespace detail

/// A dataset of the rows of the array in the NPY file at `path` (spec I29). Throws FileError like `io::read_npy`, or if
/// the array is a scalar.
template <class X>
[[nodiscard]] TensorSlices<Tensor<X>> npy_slices(const std::string& path,
                                                 std::size_t max_elements = io::npy_default_max_elements) {
  Tensor<X> x = io::read_npy<X>(path, max_elements);
  detail::check_rows(path, x.shape());
  return tensor_slices(std::move(x));
}
/// A dataset of examples: features and labels are the rows of the arrays in two NPY files. Throws FileError like
/// `io::read_npy`, if an array is a scalar, or if the numbers of rows differ.
template <class X, class Y>
[[nodiscard]] TensorSlices<Example<Tensor<X>, Tensor<Y>>> npy_slices(
    const std::string& x_path, const std::string& y_path, std::size_t max_elements = io::npy_default_max_elements) {
  Tensor<X> x = io::read_npy<X>(x_path, max_elements);
  Tensor<Y> y = io::read_npy<Y>(y_path, max_elements);
  detail::check_rows(x_path, x.shape(), y_path, y.shape());
  return tensor_slices(std::move(x), std::move(y));
}

}  // namespace dist::data
