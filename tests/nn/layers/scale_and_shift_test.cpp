#include <dist/nn/layers/scale_and_shift.hpp>

#include <cstddef>

#include <dist/core/random.hpp>
#include <dist/core/shape.hpp>
#include <dist/core/tensor.hpp>

#include <doctest/doctest.h>

TEST_CASE("ScaleAndShift has a gamma of one and a beta of zero per channel") {
  using Three = dist::nn::detail::ScaleAndShift<3>;
  REQUIRE(Three::parameters.size() == 2);
  CHECK(Three::parameters[0].name == "gamma");
  CHECK(Three::parameters[1].name == "beta");
  for (const auto& parameter : Three::parameters) CHECK(parameter.shape == dist::Shape{3});
  dist::Tensor<float> values{dist::Shape{3}, {7, 7, 7}};
  Three::initialize<0>(values.view(), dist::RandomStream{1});
  for (std::size_t c = 0; c < 3; ++c) CHECK(values[c] == 1);
  Three::initialize<1>(values.view(), dist::RandomStream{1});
  for (std::size_t c = 0; c < 3; ++c) CHECK(values[c] == 0);
}
