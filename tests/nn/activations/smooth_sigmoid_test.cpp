#include <dist/nn/activations/smooth.hpp>

#include <initializer_list>

#include <dist/nn/activation.hpp>

#include <doctest/doctest.h>

namespace nn = dist::nn;

static_assert(nn::Activation<nn::Sigmoid>);

TEST_CASE("Sigmoid: values, and the gradient against central differences") {
  CHECK(nn::Sigmoid::apply(0.0) == doctest::Approx(0.5).epsilon(1e-14));
  CHECK(nn::Sigmoid::apply(1.0) == doctest::Approx(0.73105857863000487925).epsilon(1e-14));
  CHECK(nn::Sigmoid::apply(-1000.0) == doctest::Approx(0.0).epsilon(1e-14));
  CHECK(nn::Sigmoid::apply(1000.0) == doctest::Approx(1.0).epsilon(1e-14));
  for (const double x : {-4.0, -1.25, -0.5, 0.0, 0.5, 1.0, 3.0}) {
    constexpr double step = 1e-6;
    const double numeric = (nn::Sigmoid::apply(x + step) - nn::Sigmoid::apply(x - step)) / (2 * step);
    CAPTURE(x);
    CHECK(nn::Sigmoid::gradient(nn::Sigmoid::apply(x), 3.0) == doctest::Approx(3 * numeric).epsilon(1e-8));
  }
}
