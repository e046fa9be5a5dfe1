#pragma once

#include <dist/core/shape.hpp>

namespace dist {

namespace detail {

DIST_COLD void refuse_rank(std::size_t rank) {
  throw InvalidArgument("A shape has too many axes",
                        concat(rank, " given, at most ", Shape::max_rank, " are supported"),
                        "Merge axes that are never indexed separately");
}

DIST_COLD void refuse_extents(std::size_t rank) {
  throw InvalidArgument("A shape has too many elements", concat("the product of ", rank, " extents exceeds 64 bits"),
                        "Look for an extent that was computed or read incorrectly");
}

DIST_COLD void refuse_elements(std::size_t elements, const Shape& shape) {
  throw ShapeMismatch("A tensor view does not fit its elements",
                      concat(elements, " elements for shape ", to_string(shape)),
                      "Give as many elements as the product of the extents");
}

}  // namespace detail

DIST_INLINE std::string to_string(const Shape& shape) { return concat("[", joined(shape.extents()), "]"); }

}  // namespace dist
