#pragma once

#include <cstddef>
#include <initializer_list>

#include <dist/core/config.hpp>
#include <dist/core/shape.hpp>

namespace dist {

/// One or several axes of an array, as the caller counts them: from 0, or from -1 at the end. `0` and `{0, -1}` convert
/// to it.
class Axes {
 public:
  Axes(int axis) : Axes({axis}) {}
  /// Throws InvalidArgument for more axes than a shape can have.
  Axes(std::initializer_list<int> axes);

  /// For each axis of a value of shape `shape` whether it is among these. Throws InvalidArgument for one that the value
  /// does not have (spec C09).
  struct Chosen {
    bool axis[Shape::max_rank] = {};
    [[nodiscard]] bool operator[](std::size_t index) const noexcept { return axis[index]; }
  };
  [[nodiscard]] Chosen of(const Shape& shape) const;

  /// The number, from 0, of `axis` of a value of shape `shape`. Throws InvalidArgument.
  [[nodiscard]] static std::size_t resolve(int axis, const Shape& shape);

 private:
  int axes_[Shape::max_rank] = {};
  std::size_t count_ = 0;
};

}  // namespace dist

#ifndef DIST_COMPILED
#include <dist/core/axes.ipp>
#endif
