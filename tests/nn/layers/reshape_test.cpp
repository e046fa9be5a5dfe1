#include <dist/nn/layers/reshape.hpp>

#include <type_traits>

#include <doctest/doctest.h>

TEST_CASE("Reshape is a view under other extents") {
  using Placed = dist::nn::Reshape<4, 6, 1>::On<dist::StaticShape<2, 3, 4>>;
  CHECK(std::is_same_v<Placed::Output, dist::StaticShape<4, 6, 1>>);
  CHECK(Placed::is_view);
  CHECK(Placed::parameters.empty());
}
