#pragma once

#include <cstddef>
#include <span>
#include <type_traits>

#include <dist/core/axes.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/core/shape.hpp>
#include <dist/core/tensor.hpp>

namespace dist {

/// The shape of what `shape` becomes when the chosen axes are reduced: without them.
[[nodiscard]] inline Shape without_axes(const Shape& shape, const Axes::Chosen& chosen) {
  std::size_t extents[Shape::max_rank] = {};
  std::size_t rank = 0;
  for (std::size_t axis = 0; axis < shape.rank(); ++axis)
    if (!chosen[axis]) extents[rank++] = shape[axis];
  return Shape(std::span<const std::size_t>{extents, rank});
}

/// The type in which elements are combined along axes: double for floating-point types, as there may be many elements.
template <class Op, class T>
using AxesAccumulator = std::conditional_t<Floating<T> && detail::Combines<Op, double>, double, Accumulator<T>>;

/// Combines the elements of `values` along the chosen axes into `combined`, which has `without_axes(…)` as shape and
/// holds what was combined before, at first the identity of `op`. Does not finish: a Mean is a sum so far.
template <class Op, class T>
void reduce_axes(Op op, TensorView<const T> values, const Axes::Chosen& chosen,
                 TensorView<AxesAccumulator<Op, T>> combined) {
  const Shape& shape = values.shape();
  std::size_t strides[Shape::max_rank] = {};  // in `combined`; 0 along a reduced axis
  std::size_t stride = 1;
  for (std::size_t axis = shape.rank(); axis-- > 0;) {
    if (chosen[axis]) continue;
    strides[axis] = stride;
    stride *= shape[axis];
  }
  std::size_t index[Shape::max_rank] = {};
  std::size_t target = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    AxesAccumulator<Op, T>& element = combined.data()[target];
    element = op(element, static_cast<AxesAccumulator<Op, T>>(values.data()[i]));
    for (std::size_t axis = shape.rank(); axis-- > 0;) {
      target += strides[axis];
      if (++index[axis] < shape[axis]) break;
      target -= strides[axis] * shape[axis];
      index[axis] = 0;
    }
  }
}

}  // namespace dist
