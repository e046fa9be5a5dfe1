#pragma once

#include <cstddef>
#include <initializer_list>
#include <span>
#include <string>

#include <dist/core/error.hpp>
#include <dist/core/shape.hpp>

namespace dist {

/// One or several axes of an array, as the caller counts them: from 0, or from -1 at the end. `0` and `{0, -1}` convert
/// to it.
class Axes {
 public:
  Axes(int axis) : Axes({axis}) {}
  /// Throws InvalidArgument for more axes than a shape can have.
  Axes(std::initializer_list<int> axes) {
    if (axes.size() > Shape::max_rank)
      throw InvalidArgument("There are more axes than a shape can have",
                            text(axes.size(), " were given, a shape has at most ", Shape::max_rank),
                            "Name each axis once");
    for (const int axis : axes) axes_[count_++] = axis;
  }

  /// For each axis of a value of shape `shape` whether it is among these. Throws InvalidArgument for one that the value
  /// does not have (spec C09).
  struct Chosen {
    bool axis[Shape::max_rank] = {};
    [[nodiscard]] bool operator[](std::size_t index) const noexcept { return axis[index]; }
  };
  [[nodiscard]] Chosen of(const Shape& shape) const {
    Chosen chosen;
    for (const int axis : std::span<const int>{axes_, count_}) chosen.axis[resolve(axis, shape)] = true;
    return chosen;
  }

  /// The number, from 0, of `axis` of a value of shape `shape`. Throws InvalidArgument.
  [[nodiscard]] static std::size_t resolve(int axis, const Shape& shape) {
    const auto rank = static_cast<int>(shape.rank());
    if (axis < -rank || axis >= rank)
      throw InvalidArgument(text("Axis ", axis, " is out of range"),
                            text("the value has shape ", to_string(shape), ", of rank ", rank),
                            "Count axes from 0, or from -1 at the end");
    return static_cast<std::size_t>(axis < 0 ? axis + rank : axis);
  }

 private:
  int axes_[Shape::max_rank] = {};
  std::size_t count_ = 0;
};

}  // namespace dist
