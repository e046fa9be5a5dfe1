#pragma once

#include <cstddef>
#include <initializer_list>
#include <span>
#include <string_view>
#include <type_traits>

#include <dist/core/algorithms.hpp>
#include <dist/core/config.hpp>
#include <dist/core/error.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/core/shape.hpp>
#include <dist/core/tensor.hpp>

namespace dist {

/// One or several axes of an array, counted from 0, or backwards from -1. `0` and `{0, -1}` convert to it.
class Axes {
 public:
  /// One axis.
  Axes(int axis) : Axes({axis}) {}
  /// Throws InvalidArgument if there are more axes than a shape can have.
  Axes(std::initializer_list<int> axes);

  /// A flag for each axis of a shape.
  struct Chosen {
    bool axis[Shape::max_rank] = {};  ///< true if the axis is chosen
    /// True if axis `index`, counted from 0, is chosen.
    [[nodiscard]] bool operator[](std::size_t index) const noexcept { return axis[index]; }
  };
  /// Returns a flag for each axis of `shape`: true if the axis is in this list. Throws InvalidArgument if an axis is
  /// out of range (spec C09).
  [[nodiscard]] Chosen of(const Shape& shape) const;

  /// Returns the index of `axis` in `shape`, counted from 0. Throws InvalidArgument if it is out of range.
  [[nodiscard]] static std::size_t resolve(int axis, const Shape& shape);

 private:
  int axes_[Shape::max_rank] = {};
  std::size_t count_ = 0;
};

/// Returns the shape of the concatenation of arrays of these `shapes` along `axis`, the only extent in which they may
/// differ (spec C14). Throws ShapeMismatch, naming the first two arrays that do not match as "`what` 0" etc., or if
/// they are scalars, and InvalidArgument if `axis` is out of range.
[[nodiscard]] inline Shape concatenated_shape(std::string_view what, std::span<const Shape> shapes, int axis) {
  const Shape& first = shapes.front();
  if (first.rank() == 0)
    throw ShapeMismatch(concat("The value of ", what, " 0 cannot be concatenated with others"), "it is a scalar",
                        "Give it an axis: a value of shape [1]");
  const std::size_t along = Axes::resolve(axis, first);
  std::size_t extents[Shape::max_rank] = {};
  std::copy_n(first.extents().data(), first.rank(), extents);
  for (std::size_t part = 1; part < shapes.size(); ++part) {
    bool fits = shapes[part].rank() == first.rank();
    for (std::size_t other = 0; fits && other < first.rank(); ++other)
      fits = other == along || shapes[part][other] == first[other];
    if (!fits)
      throw ShapeMismatch(concat("The values of ", what, " 0 and ", what, " ", part, " cannot be concatenated"),
                          concat("shapes ", to_string(first), " and ", to_string(shapes[part]), " along axis ", along),
                          "Give values of the same rank whose extents differ along that axis only");
    extents[along] += shapes[part][along];
  }
  return Shape(std::span<const std::size_t>{extents, first.rank()});
}

/// Copies `part` into `whole`, whose shape is the result of `concatenated_shape`, at index `before` of that axis.
template <class T>
void place_part(TensorView<const T> part, std::size_t axis, std::size_t before, TensorView<T> whole) {
  std::size_t inner = 1;
  for (std::size_t behind = axis + 1; behind < part.shape().rank(); ++behind) inner *= part.shape()[behind];
  const std::size_t block = part.shape()[axis] * inner;
  const std::size_t stride = whole.shape()[axis] * inner;
  if (block == 0) return;
  for (std::size_t from = 0, to = before * inner; from < part.size(); from += block, to += stride)
    std::copy_n(part.data() + from, block, whole.data() + to);
}

/// Returns `shape` without the chosen axes: the shape after a reduction along them.
[[nodiscard]] inline Shape without_axes(const Shape& shape, const Axes::Chosen& chosen) {
  std::size_t extents[Shape::max_rank] = {};
  std::size_t rank = 0;
  for (std::size_t axis = 0; axis < shape.rank(); ++axis)
    if (!chosen[axis]) extents[rank++] = shape[axis];
  return Shape(std::span<const std::size_t>{extents, rank});
}

/// The accumulator of reductions along axes: double for floating-point types, as there may be many elements.
template <class Op, class T>
using AxesAccumulator = std::conditional_t<Floating<T> && detail::Combines<Op, double>, double, Accumulator<T>>;

/// Combines the elements of `values` along the chosen axes into `combined`, whose shape is `without_axes(…)`.
/// `combined` accumulates the result, from the identity of `op`. Does not call `finish`: a Mean is still a sum.
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

#ifndef DIST_COMPILED
#include <dist/core/axes.ipp>
#endif
