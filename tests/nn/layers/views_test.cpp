#include <dist/nn/layers/views.hpp>

#include <type_traits>

#include <doctest/doctest.h>

TEST_CASE("Flatten is a view with a single axis") {
  using Bound = dist::nn::Flatten::On<dist::StaticShape<2, 3, 4>>;
  CHECK(std::is_same_v<Bound::Output, dist::StaticShape<24>>);
  CHECK(Bound::is_view);
  CHECK(Bound::parameters.empty());
}
