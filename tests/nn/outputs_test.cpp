#include <dist/nn/outputs.hpp>

#include <type_traits>

#include <doctest/doctest.h>

TEST_CASE("outputs are views: a loss writes through a copy") {
  dist::Tensor<float> values{dist::Shape{2}};
  dist::Tensor<float> gradient{dist::Shape{2}};
  const dist::nn::Outputs<float> logits{values, gradient};
  const auto copy = logits;
  copy.gradient[1] = 3;
  CHECK(gradient[1] == 3);
  static_assert(std::is_same_v<decltype(copy.values[0]), const float&>);
}
