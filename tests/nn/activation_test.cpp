#include <dist/nn/activation.hpp>

#include <cmath>

#include <doctest/doctest.h>

namespace nn = dist::nn;

static_assert(nn::Activation<nn::Relu> && nn::Activation<nn::Linear>);
static_assert(!nn::Activation<int>);

TEST_CASE("Relu and its gradient from its output") {
  CHECK(nn::Relu::apply(2.5) == 2.5);
  CHECK(nn::Relu::apply(-2.5) == 0);
  CHECK(nn::Relu::gradient(2.5, 7.0) == 7);
  CHECK(nn::Relu::gradient(0.0, 7.0) == 0);
  CHECK(std::isnan(nn::Relu::apply(std::nan(""))));
}

TEST_CASE("Linear leaves values and gradients alone") {
  CHECK(nn::Linear::apply(-2.5F) == -2.5F);
  CHECK(nn::Linear::gradient(-2.5F, 7.0F) == 7);
}
