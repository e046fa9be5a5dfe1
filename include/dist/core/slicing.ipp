#pragma once

#include <dist/core/error.hpp>
#include <dist/core/slicing.hpp>
#include <dist/core/text.hpp>

namespace dist {

DIST_INLINE Selection::Builder::Builder(std::string_view what, const Shape& shape, int named_axes)
    : what_(what), of_(shape), named_(static_cast<std::size_t>(named_axes)) {
  if (named_ > of_.rank())
    throw InvalidArgument(concat("A slice of ", what_, " names ", named_, " axes"),
                          concat("the shape is ", to_string(of_)), "Name at most as many axes as the shape has");
}
DIST_INLINE void Selection::Builder::add(std::ptrdiff_t index) {
  const std::size_t extent = of_[next_];
  const std::ptrdiff_t counted = index < 0 ? index + static_cast<std::ptrdiff_t>(extent) : index;
  if (counted < 0 || static_cast<std::size_t>(counted) >= extent)
    throw InvalidArgument(
        concat("Slice index ", index, " of axis ", next_, " of ", what_, " is out of range"),
        concat("the shape is ", to_string(of_)),
        "Give an index from 0 to the extent - 1, or from -1 to the negative extent, counted from the end");
  axes_[next_++] = {static_cast<std::size_t>(counted), 1, 1};
}
DIST_INLINE void Selection::Builder::add(const Range& range) {
  if (range.step == 0)
    throw InvalidArgument(concat("The step of a slice of axis ", next_, " of ", what_, " is 0"),
                          "the slice would never end", "Give a positive step, or a negative one to go backwards");
  const auto extent = static_cast<std::ptrdiff_t>(of_[next_]);
  const bool forwards = range.step > 0;
  const std::ptrdiff_t least = forwards ? 0 : -1;  // before the first index of the axis
  const std::ptrdiff_t most = forwards ? extent : extent - 1;
  const auto within = [&](std::ptrdiff_t index) {
    if (index < 0) index += extent;
    return index < least ? least : index > most ? most : index;
  };
  const std::ptrdiff_t begin = range.begin ? within(*range.begin) : forwards ? least : most;
  const std::ptrdiff_t end = range.end ? within(*range.end) : forwards ? most : least;
  const std::ptrdiff_t distance = forwards ? end - begin : begin - end;
  const std::size_t stride =
      forwards ? static_cast<std::size_t>(range.step) : std::size_t{0} - static_cast<std::size_t>(range.step);
  const std::size_t count = distance > 0 ? (static_cast<std::size_t>(distance) - 1) / stride + 1 : 0;
  keep({static_cast<std::size_t>(begin), range.step, count});
}
DIST_INLINE void Selection::Builder::add(Ellipsis) {
  if (has_ellipsis_)
    throw InvalidArgument(concat("A slice of ", what_, " has two ellipses"),
                          "the number of axes of each one is ambiguous", "Use ellipsis once");
  has_ellipsis_ = true;
  for (std::size_t whole = of_.rank() - named_; whole > 0; --whole) add(Range{});
}
DIST_INLINE Selection Selection::Builder::finish() {
  while (next_ < of_.rank()) add(Range{});
  Selection selection;
  for (std::size_t axis = 0; axis < of_.rank(); ++axis) selection.axes_[axis] = axes_[axis];
  selection.shape_ = Shape(std::span<const std::size_t>{extents_, rank_});
  return selection;
}
DIST_INLINE void Selection::Builder::append(std::size_t extent) {
  if (rank_ == Shape::max_rank)
    throw InvalidArgument(concat("A slice of ", what_, " has too many axes"),
                          concat("more than ", Shape::max_rank, ", including the new ones"),
                          "Use new_axis fewer times");
  extents_[rank_++] = extent;
}

namespace detail {

DIST_INLINE void require_mask(std::string_view what, const Shape& shape, const Shape& mask) {
  bool fits = mask.rank() > 0 && mask.rank() <= shape.rank();
  for (std::size_t axis = 0; fits && axis < mask.rank(); ++axis) fits = mask[axis] == shape[axis];
  if (!fits)
    throw ShapeMismatch(concat("A mask does not fit ", what),
                        concat("the mask has shape ", to_string(mask),
                               ", and the value that it selects from has shape ", to_string(shape)),
                        "Give a mask whose extents are the first extents of the shape, at least one");
}

}  // namespace detail

}  // namespace dist
