#include <dist/nn/outputs.hpp>

#include <doctest/doctest.h>

namespace nn = dist::nn;

TEST_CASE("ForwardMode has two models") {
  CHECK(nn::ForwardMode<nn::Training>);
  CHECK(nn::ForwardMode<decltype(nn::Inference{})>);
  CHECK_FALSE(nn::ForwardMode<bool>);
}
