#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <type_traits>

#include <dist/core/error.hpp>
#include <dist/core/shape.hpp>
#include <dist/core/tensor.hpp>
#include <dist/core/text.hpp>

namespace dist {

/// The elements of `from` with its axes in another order, as numpy.transpose: axis i of the result is axis `axes[i]` of
/// `from`. Throws InvalidArgument unless `axes` names each axis of `from` once.
template <class T>
[[nodiscard]] Tensor<std::remove_const_t<T>> transpose(TensorView<T> from, std::span<const std::size_t> axes) {
  const std::size_t rank = from.shape().rank();
  std::array<std::size_t, Shape::max_rank> strides{};
  for (std::size_t axis = rank, stride = 1; axis-- > 0; stride *= from.shape()[axis]) strides[axis] = stride;
  std::array<std::size_t, Shape::max_rank> extents{};
  std::array<std::size_t, Shape::max_rank> steps{};
  std::array<bool, Shape::max_rank> seen{};
  bool is_order = axes.size() == rank;
  for (std::size_t i = 0; is_order && i < rank; ++i) {
    is_order = axes[i] < rank && !seen[axes[i]];
    if (!is_order) break;
    seen[axes[i]] = true;
    extents[i] = from.shape()[axes[i]];
    steps[i] = strides[axes[i]];
  }
  if (!is_order)
    throw InvalidArgument("A tensor cannot be transposed like that",
                          concat("its shape is ", to_string(from.shape()), ", the order of axes {", joined(axes), "}"),
                          "Name each axis once, counted from 0, such as {1, 0} for a matrix");
  Tensor<std::remove_const_t<T>> to{Shape{std::span<const std::size_t>{extents.data(), rank}}};
  std::array<std::size_t, Shape::max_rank> place{};
  std::size_t at = 0;
  for (std::size_t i = 0; i < to.size(); ++i) {
    to[i] = from.data()[at];
    for (std::size_t axis = rank; axis-- > 0;) {
      at += steps[axis];
      if (++place[axis] < extents[axis]) break;
      at -= steps[axis] * extents[axis];
      place[axis] = 0;
    }
  }
  return to;
}
template <class T>
[[nodiscard]] Tensor<T> transpose(const Tensor<T>& from, std::span<const std::size_t> axes) {
  return transpose(TensorView<const T>{from}, axes);
}

}  // namespace dist
