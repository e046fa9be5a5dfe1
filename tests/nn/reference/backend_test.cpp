#include <dist/nn/reference/backend.hpp>

#include <doctest/doctest.h>

namespace nn = dist::nn;

TEST_CASE("the reference back end supports all floating-point types") {
  CHECK(nn::Backend<nn::Reference>);
  CHECK(nn::Reference::supports<float>);
  CHECK(nn::Reference::supports<double>);
  CHECK_FALSE(nn::Reference::supports<int>);
  CHECK(nn::Reference::name == "reference");
}
