#include <dist/nn/layers/views.hpp>

#include <type_traits>

#include <doctest/doctest.h>

TEST_CASE("Input is the shape of one row") {
  CHECK(std::is_same_v<dist::nn::Input<28, 28, 1>::Output, dist::StaticShape<28, 28, 1>>);
}
