#pragma once

#include <cstddef>
#include <utility>

#include <dist/core/shape.hpp>

namespace dist {

/// Extents known at compile time, outermost first.
template <std::size_t... Extents>
struct StaticShape {
  /// The number of axes.
  static constexpr std::size_t rank = sizeof...(Extents);
  /// The number of elements.
  static constexpr std::size_t elements = (std::size_t{1} * ... * Extents);

  /// The extent of axis `Axis`. Does not compile if it is out of range.
  template <std::size_t Axis>
  static constexpr std::size_t extent = [] {
    static_assert(Axis < rank, "this StaticShape has no such axis");
    constexpr std::size_t all[] = {Extents..., 0};
    return all[Axis];
  }();

  /// The extent of the last axis; 1 for a scalar.
  static constexpr std::size_t last_extent = [] {
    constexpr std::size_t all[] = {1, Extents...};
    return all[rank];
  }();

  /// This shape as a value.
  [[nodiscard]] static constexpr Shape shape() { return Shape{Extents...}; }
};

namespace detail {
template <class Shape, std::size_t Last, class Axes>
struct ThenExtent;
template <class Shape, std::size_t Last, std::size_t... Axis>
struct ThenExtent<Shape, Last, std::index_sequence<Axis...>> {
  using Type = StaticShape<Shape::template extent<Axis>..., Last>;
};
}  // namespace detail

/// The first `Count` extents of a StaticShape, followed by `Last`.
template <class Shape, std::size_t Count, std::size_t Last>
using FirstExtentsAnd = typename detail::ThenExtent<Shape, Last, std::make_index_sequence<Count>>::Type;

}  // namespace dist
