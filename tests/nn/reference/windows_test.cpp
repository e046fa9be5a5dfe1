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
