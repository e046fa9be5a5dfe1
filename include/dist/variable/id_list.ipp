#pragma once

#include <dist/core/algorithms.hpp>
#include <dist/variable/id_list.hpp>

namespace dist::detail {

DIST_INLINE Shape IdList::shape_of_rows(const Shape& variable) const {
  std::size_t extents[2 * Shape::max_rank] = {};
  const std::size_t axes = shape_.rank();
  std::copy_n(shape_.extents().data(), axes, extents);
  for (std::size_t axis = 1; axis < variable.rank(); ++axis) extents[axes + axis - 1] = variable[axis];
  return Shape(std::span<const std::size_t>{extents, axes + variable.rank() - 1});
}

}  // namespace dist::detail
