#include <dist/nn/layers/flatten.hpp>

#include <type_traits>

#include <doctest/doctest.h>

TEST_CASE("Flatten is a view along one axis") {
  using Placed = dist::nn::Flatten::On<dist::StaticShape<2, 3, 4>>;
  CHECK(std::is_same_v<Placed::Output, dist::StaticShape<24>>);
  CHECK(Placed::is_view);
  CHECK(Placed::parameters.empty());
}
