#pragma once

#include <cstddef>
#include <string>
#include <utility>

#include <dist/core/tensor.hpp>
#include <dist/data/npy_slices.hpp>
#include <dist/data/tensor_slices.hpp>
#include <dist/io/npz.hpp>

namespace dist::data {

/// A dataset of the rows of the array `x` in the NPZ file at `path` (spec I29): `npz_slices<float>("data.npz", "x")`.
/// Throws FileError like `io::Npz`, or if the array is a scalar.
template <class X>
[[nodiscard]] TensorSlices<Tensor<X>> npz_slices(const std::string& path, const std::string& x,
                                                 std::size_t max_elements = io::npy_default_max_elements) {
  Tensor<X> features = io::Npz{path}.read<X>(x, max_elements);
  detail::check_rows(concat(path, ":", x), features.shape());
  return tensor_slices(std::move(features));
}
/// A dataset of examples: features and labels are the rows of the arrays `x` and `y` in an NPZ file. Throws FileError
/// like `io::Npz`, if an array is a scalar, or if the numbers of rows differ.
template <class X, class Y>
[[nodiscard]] TensorSlices<Example<Tensor<X>, Tensor<Y>>> npz_slices(
    const std::string& path, const std::string& x, const std::string& y,
    std::size_t max_elements = io::npy_default_max_elements) {
  const io::Npz npz{path};
  Tensor<X> features = npz.read<X>(x, max_elements);
  Tensor<Y> labels = npz.read<Y>(y, max_elements);
  detail::check_rows(concat(path, ":", x), features.shape(), concat(path, ":", y), labels.shape());
  return tensor_slices(std::move(features), std::move(labels));
}

}  // namespace dist::data
