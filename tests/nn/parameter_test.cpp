#include <dist/nn/parameter.hpp>

#include <doctest/doctest.h>

namespace nn = dist::nn;

TEST_CASE("parameters are named as in Keras") {
  CHECK(nn::Parameter{"dense", 0, "kernel", {}, 0}.name() == "dense/kernel");
  CHECK(nn::Parameter{"dense", 2, "bias", {}, 0}.name() == "dense_2/bias");
}

TEST_CASE("parameters of others are named as they name them") {
  CHECK(nn::Parameter{"conv1", 0, "weight", {}, 0, '.'}.name() == "conv1.weight");
  CHECK(nn::Parameter{"", 0, "weight", {}, 0, '.'}.name() == "weight");
}

TEST_CASE("padding goes up to a cache line of float") {
  CHECK(nn::padded(0) == 0);
  CHECK(nn::padded(1) == 16);
  CHECK(nn::padded(16) == 16);
  CHECK(nn::padded(17) == 32);
}
