#include <dist/nn/option_state.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <doctest/doctest.h>

namespace nn = dist::nn;

TEST_CASE("an update skips the parameters without a gradient, by element and by part") {
  const std::array<nn::detail::Segment, 3> segments{nn::detail::Segment{4}, {6}, {10}};
  const std::array<std::uint8_t, 3> has_gradient{1, 0, 1};
  const auto subtract = [](std::size_t, float weight, float gradient) { return weight - gradient; };
  const nn::PresentUpdate<decltype(subtract)> update{subtract, segments.data(), segments.size(), has_gradient.data()};

  CHECK(update(3, 5.0F, 1.0F) == 4);
  CHECK(update(4, 5.0F, 1.0F) == 5);
  CHECK(update(5, 5.0F, 1.0F) == 5);
  CHECK(update(6, 5.0F, 1.0F) == 4);

  std::vector<dist::IndexRange> visited;
  update.for_each_part({2, 9}, [&](const auto&, dist::IndexRange range) { visited.push_back(range); });
  CHECK(visited == std::vector<dist::IndexRange>{{2, 4}, {6, 9}});
}
