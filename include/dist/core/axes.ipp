#pragma once

#include <span>

#include <dist/core/axes.hpp>
#include <dist/core/error.hpp>

namespace dist {

DIST_INLINE Axes::Axes(std::initializer_list<int> axes) {
  if (axes.size() > Shape::max_rank)
    throw InvalidArgument("There are more axes than a shape can have",
                          concat(axes.size(), " were given, a shape has at most ", Shape::max_rank),
                          "Name each axis once");
  for (const int axis : axes) axes_[count_++] = axis;
}

DIST_INLINE Axes::Chosen Axes::of(const Shape& shape) const {
  Chosen chosen;
  for (const int axis : std::span<const int>{axes_, count_}) chosen.axis[resolve(axis, shape)] = true;
  return chosen;
}

DIST_INLINE std::size_t Axes::resolve(int axis, const Shape& shape) {
  const auto rank = static_cast<int>(shape.rank());
  if (axis < -rank || axis >= rank)
    throw InvalidArgument(concat("Axis ", axis, " is out of range"),
                          concat("the value has shape ", to_string(shape), ", of rank ", rank),
                          "Count axes from 0, or from -1 at the end");
  return static_cast<std::size_t>(axis < 0 ? axis + rank : axis);
}

}  // namespace dist
