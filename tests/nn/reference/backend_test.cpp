#include <dist/nn/reference/backend.hpp>

#include <doctest/doctest.h>

namespace nn = dist::nn;

TEST_CASE("the reference back end computes in any floating-point type") {
  CHECK(nn::Backend<nn::Reference>);
  CHECK(nn::Reference::supports<float>);
  CHECK(nn::Reference::supports<double>);
  CHECK_FALSE(nn::Reference::supports<int>);
  CHECK(nn::Reference::name == "reference");
}
