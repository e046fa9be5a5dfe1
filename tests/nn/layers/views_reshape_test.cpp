#include <dist/nn/layers/views.hpp>

#include <type_traits>

#include <doctest/doctest.h>

TEST_CASE("Reshape is a view with other extents") {
  using Bound = dist::nn::Reshape<4, 6, 1>::On<dist::StaticShape<2, 3, 4>>;
  CHECK(std::is_same_v<Bound::Output, dist::StaticShape<4, 6, 1>>);
  CHECK(Bound::is_view);
  CHECK(Bound::parameters.empty());
}
