/// Slices of tensors, as in Python: `tensor[1, 2:8:3, ...]`.
#pragma once

#include <concepts>
#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>

#include <dist/core/config.hpp>
#include <dist/core/shape.hpp>
#include <dist/core/tensor.hpp>

namespace dist {

/// The indices `begin`, `begin + step`, … before `end` of one axis, as Python's `begin:end:step`. Negative indices
/// count from the end, missing ones reach to the end of the axis, and indices out of range are clamped: `Range{}` is
/// the whole axis, `Range{1, -1}` all except the first and the last index, `Range{.step = -1}` the reversed axis.
struct Range {
  std::optional<std::ptrdiff_t> begin = {};  ///< first index; none: the first one, or the last one for a negative step
  std::optional<std::ptrdiff_t> end = {};    ///< limit of the indices, not selected itself; none: no limit
  std::ptrdiff_t step = 1;                   ///< distance of indices, not 0; negative: backwards
};
/// Selects all axes that the other parts of a slice do not name: Python's `...`.
struct Ellipsis {};
/// Python's `...`, see Ellipsis.
inline constexpr Ellipsis ellipsis{};
/// A new axis with one index: Python's `None`, numpy.newaxis.
struct NewAxis {};
/// Python's `None` and numpy.newaxis, see NewAxis.
inline constexpr NewAxis new_axis{};

/// One part of a slice: an integer, which removes the axis, a Range, `ellipsis` or `new_axis`.
template <class P>
concept SlicePart = (std::integral<P> && !std::same_as<P, bool>) || std::same_as<P, Range> ||
                    std::same_as<P, Ellipsis> || std::same_as<P, NewAxis>;

/// The elements of a tensor that a slice selects.
class Selection {
 public:
  /// The `count` indices `first`, `first + step`, … of one axis.
  struct Axis {
    std::size_t first = 0;    ///< first index
    std::ptrdiff_t step = 1;  ///< distance of indices
    std::size_t count = 0;    ///< number of indices

    /// Returns index number `i`.
    [[nodiscard]] constexpr std::size_t operator[](std::size_t i) const noexcept {
      return first + i * static_cast<std::size_t>(step);  // wraps around if `step` is negative
    }
  };

  /// Selects the parts of `what`, for instance "variable 'table'", whose shape is `shape`; axes after the last part are
  /// whole. Throws InvalidArgument if an index is out of range, a step is 0, there are more parts than axes or two
  /// ellipses, or the result has more axes than a shape can have.
  template <SlicePart... Parts>
  [[nodiscard]] static Selection of(std::string_view what, const Shape& shape, const Parts&... parts) {
    Builder builder{what, shape, (0 + ... + int{std::integral<Parts> || std::same_as<Parts, Range>})};
    (builder.add(parts), ...);
    return builder.finish();
  }

  /// The selected indices of axis `number` of the tensor.
  [[nodiscard]] const Axis& axis(std::size_t number) const noexcept { return axes_[number]; }
  /// The shape of the selected elements, without axes selected by a single index.
  [[nodiscard]] const Shape& shape() const noexcept { return shape_; }
  /// Returns the same selection for a tensor that consists of only the selected rows, in their order.
  [[nodiscard]] Selection of_chosen_rows() const noexcept {
    Selection rows = *this;
    rows.axes_[0] = {0, 1, axes_[0].count};
    return rows;
  }

  /// Copies the selected elements of `tensor`, whose shape must be the one passed to `of`.
  template <class T>
  [[nodiscard]] Tensor<std::remove_const_t<T>> from(TensorView<T> tensor) const {
    Tensor<std::remove_const_t<T>> chosen{shape_};
    std::size_t done = 0;
    if (chosen.size() > 0) copy(tensor, 0, 0, chosen.elements(), done);
    return chosen;
  }

 private:
  class Builder {
   public:
    Builder(std::string_view what, const Shape& shape, int named_axes);

    void add(std::ptrdiff_t index);
    template <std::integral Index>
      requires(!std::same_as<Index, std::ptrdiff_t>)
    void add(Index index) {
      if constexpr (!std::signed_integral<Index> && sizeof(Index) >= sizeof(std::ptrdiff_t)) {
        constexpr auto most = static_cast<Index>(static_cast<std::size_t>(-1) / 2);
        add(static_cast<std::ptrdiff_t>(index < most ? index : most));  // out of range for all axes
      } else {
        add(static_cast<std::ptrdiff_t>(index));
      }
    }
    void add(const Range& range);
    void add(Ellipsis);
    void add(NewAxis) { append(1); }

    [[nodiscard]] Selection finish();

   private:
    void keep(const Axis& axis) {
      axes_[next_++] = axis;
      append(axis.count);
    }
    void append(std::size_t extent);

    std::string_view what_;
    Shape of_;
    std::size_t named_;  // axes with an index or a Range
    Axis axes_[Shape::max_rank] = {};
    std::size_t next_ = 0;
    bool has_ellipsis_ = false;
    std::size_t extents_[Shape::max_rank] = {};
    std::size_t rank_ = 0;
  };

  Selection() = default;

  /// Copies the selected elements of `axis` and all inner axes, starting at element `first` of `tensor`.
  template <class T, class To>
  void copy(TensorView<T> tensor, std::size_t axis, std::size_t first, std::span<To> to, std::size_t& done) const {
    if (axis == tensor.shape().rank()) {
      to[done++] = tensor.data()[first];
      return;
    }
    std::size_t stride = 1;
    for (std::size_t behind = axis + 1; behind < tensor.shape().rank(); ++behind) stride *= tensor.shape()[behind];
    for (std::size_t i = 0; i < axes_[axis].count; ++i)
      copy(tensor, axis + 1, first + axes_[axis][i] * stride, to, done);
  }

  Axis axes_[Shape::max_rank] = {};
  Shape shape_;
};

namespace detail {

/// True if all parts are valid parts of a slice; otherwise a readable compile error.
template <class... Parts>
[[nodiscard]] consteval bool require_slice_parts() {
  static_assert((satisfied<SlicePart<Parts>> && ...),
                "a slice consists of integers, Range, ellipsis and new_axis, one for each axis: to select rows by a "
                "list, gather them");
  return (SlicePart<Parts> && ...);
}

}  // namespace detail

/// Returns a copy of the selected elements of `tensor`: `sliced(view, 0, Range{2, 8, 3})` is Python's `view[0, 2:8:3]`.
/// Throws the errors of Selection::of.
template <class T, class... Parts>
[[nodiscard]] Tensor<std::remove_const_t<T>> sliced(TensorView<T> tensor, const Parts&... parts) {
  if constexpr (detail::require_slice_parts<Parts...>())
    return Selection::of("a tensor", tensor.shape(), parts...).from(tensor);
  else
    return {};
}

namespace detail {

/// Throws ShapeMismatch unless the mask has at least one axis, and its extents are the first extents of `shape`.
void require_mask(std::string_view what, const Shape& shape, const Shape& mask);

}  // namespace detail

/// Returns the elements of `tensor`, or the rows along its last axes, for which `mask` is true: numpy's `tensor[mask]`.
/// Throws ShapeMismatch unless the extents of the mask are the first extents of the tensor.
template <class T>
[[nodiscard]] Tensor<std::remove_const_t<T>> masked(TensorView<T> tensor, TensorView<const bool> mask) {
  detail::require_mask("a tensor", tensor.shape(), mask.shape());
  Shape row = tensor.shape();
  for (std::size_t axis = 0; axis < mask.shape().rank(); ++axis) row = row.row();
  std::size_t count = 0;
  for (std::size_t i = 0; i < mask.size(); ++i) count += std::size_t{mask[i]};
  Tensor<std::remove_const_t<T>> chosen{row.stacked(count)};
  const std::size_t width = row.elements();
  std::size_t done = 0;
  for (std::size_t i = 0; i < mask.size(); ++i)
    if (mask[i])
      for (std::size_t element = 0; element < width; ++element) chosen[done++] = tensor[i * width + element];
  return chosen;
}

}  // namespace dist

#ifndef DIST_COMPILED
#include <dist/core/slicing.ipp>
#endif
