#include <dist/nn/reference/windows.hpp>

#include <array>
#include <vector>

#include <dist/core/static_shape.hpp>
#include <dist/nn/geometry.hpp>

#include <doctest/doctest.h>

namespace nn = dist::nn;

TEST_CASE("taps of a 2 x 1 image under a window of 3 with zeros around: only those inside the image") {
  using Geometry = nn::WindowGeometry<dist::StaticShape<2, 1, 1>, 3, 1, nn::Same>;
  std::vector<std::array<std::size_t, 3>> taps;
  nn::reference::for_each_tap<Geometry>([&](std::size_t output, std::size_t input, std::size_t tap) {
    taps.push_back({output, input, tap});
  });
  // The middle column of the window; output 0 sees the image below its first row, output 1 above its last.
  CHECK(taps == std::vector<std::array<std::size_t, 3>>{{0, 0, 4}, {0, 1, 7}, {1, 0, 1}, {1, 1, 4}});
}

TEST_CASE("windows of 3 by strides of 2 over a 4 x 3 image with a zero around: what they cover inside") {
  using Geometry = nn::WindowGeometry<dist::StaticShape<4, 3, 1>, 3, 2, nn::Pad<1>>;
  std::vector<std::array<std::size_t, 5>> windows;
  nn::reference::for_each_window<Geometry>([&](std::size_t output, dist::IndexRange rows, dist::IndexRange columns) {
    windows.push_back({output, rows.begin, rows.end, columns.begin, columns.end});
  });
  CHECK(windows ==
        std::vector<std::array<std::size_t, 5>>{{0, 0, 2, 0, 2}, {1, 0, 2, 1, 3}, {2, 1, 4, 0, 2}, {3, 1, 4, 1, 3}});
}

TEST_CASE("the windows that cover a row are those in whose rows it is") {
  const auto check = []<class Geometry>(Geometry) {
    for (std::size_t at = 0; at < Geometry::height; ++at) {
      const dist::IndexRange found = nn::reference::covering<Geometry>(at, Geometry::pad_top, Geometry::output_height);
      for (std::size_t output = 0; output < Geometry::output_height; ++output) {
        const dist::IndexRange rows = nn::reference::inside<Geometry>(output, Geometry::pad_top, Geometry::height);
        CHECK((found.begin <= output && output < found.end) == (rows.begin <= at && at < rows.end));
      }
    }
  };
  check(nn::WindowGeometry<dist::StaticShape<7, 1, 1>, 3, 2, nn::Same>{});
  check(nn::WindowGeometry<dist::StaticShape<8, 5, 1>, 2, 3, nn::Valid>{});
  check(nn::WindowGeometry<dist::StaticShape<6, 6, 1>, 4, 1, nn::Pad<3, 1>>{});
}
