#pragma once

#include <cstddef>
#include <initializer_list>
#include <span>
#include <string>

#include <dist/core/error.hpp>

namespace dist {

/// The extents of a dense, row-major array, outermost first. Rank 0 is a scalar with one element.
class Shape {
 public:
  static constexpr std::size_t max_rank = 6;

  constexpr Shape() = default;
  constexpr Shape(std::initializer_list<std::size_t> extents)
      : Shape(std::span<const std::size_t>{extents.begin(), extents.size()}) {}
  /// Throws InvalidArgument when there are more than `max_rank` extents, or more elements than can be counted.
  constexpr explicit Shape(std::span<const std::size_t> extents) : rank_(extents.size()) {
    if (rank_ > max_rank)
      throw InvalidArgument("A shape has too many axes", text(rank_, " given, at most ", max_rank, " are supported"),
                            "Merge axes that are never indexed apart");
    std::size_t product = 1;
    for (std::size_t axis = 0; axis < rank_; ++axis) {
      extents_[axis] = extents[axis];
      if (extents[axis] != 0 && product > static_cast<std::size_t>(-1) / extents[axis])
        throw InvalidArgument("A shape has too many elements",
                              text("the product of ", rank_, " extents exceeds 64 bits"),
                              "Look for an extent that was computed or read wrongly");
      product *= extents[axis];
    }
  }

  [[nodiscard]] constexpr std::size_t rank() const noexcept { return rank_; }
  [[nodiscard]] constexpr std::size_t operator[](std::size_t axis) const noexcept { return extents_[axis]; }
  [[nodiscard]] constexpr std::span<const std::size_t> extents() const noexcept { return {extents_, rank_}; }

  [[nodiscard]] constexpr std::size_t elements() const noexcept {
    std::size_t product = 1;
    for (const std::size_t extent : extents()) product *= extent;
    return product;
  }

  /// This shape behind a new outermost axis: the shape of `count` such arrays stacked.
  [[nodiscard]] constexpr Shape stacked(std::size_t count) const {
    std::size_t extents[max_rank + 1] = {count};
    for (std::size_t axis = 0; axis < rank_; ++axis) extents[axis + 1] = extents_[axis];
    return Shape(std::span<const std::size_t>{extents, rank_ + 1});
  }

  /// The shape of one element along the outermost axis.
  [[nodiscard]] constexpr Shape row() const {
    return rank_ == 0 ? Shape{} : Shape(std::span<const std::size_t>{extents_ + 1, rank_ - 1});
  }

  /// This shape with another outermost extent; a scalar stays a scalar.
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
  std::size_t extents_[max_rank] = {};
  std::size_t rank_ = 0;
};

/// "[64, 28, 28, 1]"; "[]" is a scalar.
[[nodiscard]] inline std::string to_string(const Shape& shape) {
  std::string joined = "[";
  for (std::size_t axis = 0; axis < shape.rank(); ++axis) joined += text(axis == 0 ? "" : ", ", shape[axis]);
  return joined + "]";
}

}  // namespace dist
