#pragma once

#include <cstddef>

#include <dist/core/config.hpp>
#include <dist/core/index_range.hpp>

namespace dist::nn::reference {

/// Calls `visit(output, input, tap)` for every pair of pixels that a convolution connects in an image:
/// `output` and `input` are pixel numbers (row * width + column), `tap` is the place in the window. Taps on
/// padding are left out.
template <class Geometry, class Visit>
void for_each_tap(Visit&& visit) {
  using G = Geometry;
  for (std::size_t row = 0; row < G::output_height; ++row)
    for (std::size_t column = 0; column < G::output_width; ++column)
      for (std::size_t down = 0; down < G::window; ++down)
        for (std::size_t right = 0; right < G::window; ++right) {
          // Above and left of the image these wrap around to numbers that are too large.
          const std::size_t in_row = row * G::stride + down - G::pad_top;
          const std::size_t in_column = column * G::stride + right - G::pad_left;
          if (in_row < G::height && in_column < G::width)
            visit(row * G::output_width + column, in_row * G::width + in_column, down * G::window + right);
        }
}

/// The rows, or columns, of a window that lie in the image, where `output` is the window's number along that axis.
template <class Geometry>
[[nodiscard]] DIST_HD constexpr IndexRange inside(std::size_t output, std::size_t padding, std::size_t extent) {
  const std::size_t start = output * Geometry::stride;
  const std::size_t end = start + Geometry::window - padding;
  return {start > padding ? start - padding : 0, end < extent ? end : extent};
}

/// The windows along an axis, of `outputs` in all, that cover the row or column `at` of the image.
template <class Geometry>
[[nodiscard]] DIST_HD constexpr IndexRange covering(std::size_t at, std::size_t padding, std::size_t outputs) {
  const std::size_t place = at + padding;
  const std::size_t end = place / Geometry::stride + 1;
  return {place < Geometry::window ? 0 : (place - Geometry::window) / Geometry::stride + 1,
          end < outputs ? end : outputs};
}

/// Calls `visit(output, rows, columns)` for every window: `output` is its pixel, and the others are the IndexRanges of
/// what it covers inside the image.
template <class Geometry, class Visit>
void for_each_window(Visit&& visit) {
  using G = Geometry;
  for (std::size_t row = 0; row < G::output_height; ++row)
    for (std::size_t column = 0; column < G::output_width; ++column)
      visit(row * G::output_width + column, inside<G>(row, G::pad_top, G::height),
            inside<G>(column, G::pad_left, G::width));
}

}  // namespace dist::nn::reference
