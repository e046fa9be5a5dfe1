/// Parts of tensors, chosen axis by axis as Python's `tensor[1, 2:8:3, ...]` does.
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

/// The indices `begin`, `begin + step`, … before `end`, of one axis: Python's `begin:end:step`. Negative indices count from the
/// end of the axis, what is left out reaches to its end, and what lies outside is left away: `Range{}` is all of an axis,
/// `Range{1, -1}` all but the first and the last index, `Range{.step = -1}` all backwards.
struct Range {
  std::optional<std::ptrdiff_t> begin = {};
  std::optional<std::ptrdiff_t> end = {};
  std::ptrdiff_t step = 1;
};
/// As many whole axes as the other parts of a slice leave: Python's `...`.
struct Ellipsis {};
inline constexpr Ellipsis ellipsis{};
/// An axis of one index that the tensor does not have: Python's `None`, numpy.newaxis.
struct NewAxis {};
inline constexpr NewAxis new_axis{};

/// What chooses among the indices of an axis: a whole number, which takes the axis away, a Range, `ellipsis` or `new_axis`.
template <class P>
concept SlicePart = (std::integral<P> && !std::same_as<P, bool>) || std::same_as<P, Range> ||
                    std::same_as<P, Ellipsis> || std::same_as<P, NewAxis>;

/// Which elements of a tensor a slice has.
class Selection {
 public:
  /// Of one axis the indices `first`, `first + step`, …, `count` of them.
  struct Axis {
    std::size_t first = 0;
    std::ptrdiff_t step = 1;
    std::size_t count = 0;

    [[nodiscard]] constexpr std::size_t operator[](std::size_t i) const noexcept {
      return first + i * static_cast<std::size_t>(step);  // which wraps around for negative steps
    }
  };

  /// The parts for the axes of `what`, such as "variable 'table'", of that shape; axes behind the last part are whole. Throws
  /// InvalidArgument for an index that an axis does not have, a step of 0, more parts than axes, two ellipses, and a result of
  /// more axes than a shape can have.
  template <SlicePart... Parts>
  [[nodiscard]] static Selection of(std::string_view what, const Shape& shape, const Parts&... parts) {
    Builder builder{what, shape, (0 + ... + int{std::integral<Parts> || std::same_as<Parts, Range>})};
    (builder.add(parts), ...);
    return builder.finish();
  }

  /// Of the tensor, by its axes.
  [[nodiscard]] const Axis& axis(std::size_t number) const noexcept { return axes_[number]; }
  /// Of the result.
  [[nodiscard]] const Shape& shape() const noexcept { return shape_; }
  /// The same of a tensor that has no other rows than the chosen ones, in their order.
  [[nodiscard]] Selection of_chosen_rows() const noexcept {
    Selection rows = *this;
    rows.axes_[0] = {0, 1, axes_[0].count};
    return rows;
  }

  /// The chosen elements of `tensor`, which has the shape that this was made for.
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
        add(static_cast<std::ptrdiff_t>(index < most ? index : most));  // which no axis has
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
    std::size_t named_;  // axes
    Axis axes_[Shape::max_rank] = {};
    std::size_t next_ = 0;
    bool has_ellipsis_ = false;
    std::size_t extents_[Shape::max_rank] = {};
    std::size_t rank_ = 0;
  };

  Selection() = default;

  /// Copies what is chosen of the elements of `tensor` from `first` on, those of `axis` and of the axes behind it.
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

/// Refuses, in a sentence, what is no part of a slice, and says whether it did not.
template <class... Parts>
[[nodiscard]] consteval bool require_slice_parts() {
  static_assert(
      (satisfied<SlicePart<Parts>> && ...),
      "a slice is made of whole numbers, Range, ellipsis and new_axis, one for each axis; rows that a list names are "
      "gathered");
  return (SlicePart<Parts> && ...);
}

}  // namespace detail

/// A copy of the elements of `tensor` that the parts choose: `sliced(view, 0, Range{2, 8, 3})` is Python's `view[0, 2:8:3]`.
/// Throws as Selection::of does.
template <class T, class... Parts>
[[nodiscard]] Tensor<std::remove_const_t<T>> sliced(TensorView<T> tensor, const Parts&... parts) {
  if constexpr (detail::require_slice_parts<Parts...>())
    return Selection::of("a tensor", tensor.shape(), parts...).from(tensor);
  else
    return {};
}

namespace detail {

/// Throws ShapeMismatch for a mask of another shape than the first axes of `what`, and for one without axes.
void require_mask(std::string_view what, const Shape& shape, const Shape& mask);

}  // namespace detail

/// The elements, or the rows along its last axes, of `tensor` for which `mask` is true, one after another: numpy's
/// `tensor[mask]`. Throws ShapeMismatch unless the extents of the mask are the first ones of the tensor.
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
