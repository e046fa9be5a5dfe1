#pragma once

#include <cstddef>
#include <initializer_list>
#include <span>
#include <string>

#include <dist/core/config.hpp>
#include <dist/core/error.hpp>

namespace dist {

class Shape;

namespace detail {

/// Throw the errors of the constructors of shapes and views.
[[noreturn]] void refuse_rank(std::size_t rank);
[[noreturn]] void refuse_extents(std::size_t rank);
[[noreturn]] void refuse_elements(std::size_t elements, const Shape& shape);

}  // namespace detail

/// The extents of a dense, row-major array, outermost first. Rank 0 is a scalar with one element.
class Shape {
 public:
  /// Maximum number of axes.
  static constexpr std::size_t max_rank = 6;

  constexpr Shape() = default;
  /// Like the constructor from a span.
  constexpr Shape(std::initializer_list<std::size_t> extents)
      : Shape(std::span<const std::size_t>{extents.begin(), extents.size()}) {}
  /// Throws InvalidArgument if there are more than `max_rank` extents, or the number of elements overflows.
  constexpr explicit Shape(std::span<const std::size_t> extents) : rank_(extents.size()) {
    if (rank_ > max_rank) detail::refuse_rank(rank_);
    std::size_t product = 1;
    for (std::size_t axis = 0; axis < rank_; ++axis) {
      extents_[axis] = extents[axis];
      if (extents[axis] != 0 && product > static_cast<std::size_t>(-1) / extents[axis]) detail::refuse_extents(rank_);
      product *= extents[axis];
    }
  }

  /// The number of axes.
  [[nodiscard]] DIST_HD constexpr std::size_t rank() const noexcept { return rank_; }
  /// The extent of an axis, which must be less than `rank()`.
  [[nodiscard]] DIST_HD constexpr std::size_t operator[](std::size_t axis) const noexcept { return extents_[axis]; }
  /// The extents, outermost first.
  [[nodiscard]] constexpr std::span<const std::size_t> extents() const noexcept { return {extents_, rank_}; }

  /// The number of elements: the product of the extents, 1 for a scalar.
  [[nodiscard]] DIST_HD constexpr std::size_t elements() const noexcept {
    std::size_t product = 1;
    for (std::size_t axis = 0; axis < rank_; ++axis) product *= extents_[axis];
    return product;
  }

  /// Returns this shape with a new outermost axis: the shape of `count` such arrays stacked.
  [[nodiscard]] constexpr Shape stacked(std::size_t count) const {
    std::size_t extents[max_rank + 1] = {count};
    for (std::size_t axis = 0; axis < rank_; ++axis) extents[axis + 1] = extents_[axis];
    return Shape(std::span<const std::size_t>{extents, rank_ + 1});
  }

  /// The shape of one element along the outermost axis.
  [[nodiscard]] constexpr Shape row() const noexcept {
    Shape row;
    for (std::size_t axis = 1; axis < max_rank; ++axis) row.extents_[axis - 1] = extents_[axis];
    row.rank_ = rank_ == 0 ? 0 : rank_ - 1;
    return row;
  }

  /// Returns this shape with outermost extent `count`; a scalar stays a scalar.
  [[nodiscard]] constexpr Shape with_rows(std::size_t count) const {
    Shape changed = *this;
    if (rank_ > 0) changed.extents_[0] = count;
    return changed;
  }

  friend constexpr bool operator==(const Shape& a, const Shape& b) noexcept {
    if (a.rank_ != b.rank_) return false;
    for (std::size_t axis = 0; axis < a.rank_; ++axis)
      if (a.extents_[axis] != b.extents_[axis]) return false;
    return true;
  }

 private:
  std::size_t extents_[max_rank] = {};  // 0 after the last axis
  std::size_t rank_ = 0;
};

/// Formats a shape as "[64, 28, 28, 1]"; "[]" is a scalar.
[[nodiscard]] std::string to_string(const Shape& shape);

}  // namespace dist

#ifndef DIST_COMPILED
#include <dist/core/shape.ipp>
#endif
