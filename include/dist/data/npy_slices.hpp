#pragma once

#include <cstddef>
#include <string>
#include <utility>

#include <dist/core/error.hpp>
#include <dist/core/tensor.hpp>
#include <dist/data/tensor_slices.hpp>
#include <dist/io/npy.hpp>

namespace dist::data {

namespace detail {

/// Throws FileError unless the array of `file` has rows. Of two files, unless both have the same number.
template <class T>
void check_rows(const std::string& file, const Tensor<T>& array) {
  if (array.shape().rank() == 0)
    throw FileError(file, "holds no rows", "its array is a scalar",
                    "Save an array whose first axis counts the examples");
}
template <class X, class Y>
void check_rows(const std::string& x_file, const Tensor<X>& x, const std::string& y_file, const Tensor<Y>& y) {
  check_rows(x_file, x);
  check_rows(y_file, y);
  if (x.rows() != y.rows())
    throw FileError(y_file, concat("does not fit '", x_file, "'"), concat(y.rows(), " labels, ", x.rows(), " features"),
                    "Give arrays whose first axes agree");
}

}  // namespace detail

/// A dataset of the rows of the array in the NPY file at `path` (spec I29). Throws FileError as `io::read_npy` does,
/// and for a scalar, which has no rows.
template <class X>
[[nodiscard]] TensorSlices<Tensor<X>> npy_slices(const std::string& path,
                                                 std::size_t max_elements = io::npy_default_max_elements) {
  Tensor<X> x = io::read_npy<X>(path, max_elements);
  detail::check_rows(path, x);
  return tensor_slices(std::move(x));
}
/// A dataset of the examples whose features and labels are the rows of the arrays in two NPY files. Throws FileError
/// also when their numbers differ.
template <class X, class Y>
[[nodiscard]] TensorSlices<Example<Tensor<X>, Tensor<Y>>> npy_slices(
    const std::string& x_path, const std::string& y_path, std::size_t max_elements = io::npy_default_max_elements) {
  Tensor<X> x = io::read_npy<X>(x_path, max_elements);
  Tensor<Y> y = io::read_npy<Y>(y_path, max_elements);
  detail::check_rows(x_path, x, y_path, y);
  return tensor_slices(std::move(x), std::move(y));
}

}  // namespace dist::data
