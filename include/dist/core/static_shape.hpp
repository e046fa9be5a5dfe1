#pragma once

#include <cstddef>

#include <dist/core/shape.hpp>

namespace dist {

/// Extents known at compile time, outermost first.
template <std::size_t... Extents>
struct StaticShape {
  static constexpr std::size_t rank = sizeof...(Extents);
  static constexpr std::size_t elements = (std::size_t{1} * ... * Extents);

  /// The extent of one axis.
  template <std::size_t Axis>
  static constexpr std::size_t extent = [] {
    static_assert(Axis < rank, "this StaticShape has no such axis");
    constexpr std::size_t all[] = {Extents..., 0};
    return all[Axis];
  }();

  [[nodiscard]] static constexpr Shape shape() { return Shape{Extents...}; }
};

}  // namespace dist
