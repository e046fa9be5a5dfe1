#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include <dist/core/algorithms.hpp>
#include <dist/core/axes.hpp>
#include <dist/core/error.hpp>
#include <dist/core/shape.hpp>
#include <dist/core/tensor.hpp>

namespace dist {

/// The shape of arrays of `shapes`, concatenated along `axis`. They may differ in that extent only (spec C14):
/// throws ShapeMismatch, which names the first two that differ elsewhere as "`what` 0" and so on, for a scalar as well,
/// and InvalidArgument for an axis that they do not have.
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
                          "Give values of one rank whose extents differ along that axis only");
    extents[along] += shapes[part][along];
  }
  return Shape(std::span<const std::size_t>{extents, first.rank()});
}

/// Copies `part` into `whole`, an array of the shape that `concatenated_shape` gave, after `before` elements of that
/// axis.
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

}  // namespace dist
