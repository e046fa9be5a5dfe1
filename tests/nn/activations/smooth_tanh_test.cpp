#include <dist/nn/activations/smooth.hpp>

#include <initializer_list>

#include <dist/nn/activation.hpp>

#include <doctest/doctest.h>

namespace nn = dist::nn;

static_assert(nn::Activation<nn::Tanh>);

TEST_CASE("Tanh: values, and the gradient against central differences") {
  CHECK(nn::Tanh::apply(0.0) == doctest::Approx(0.0).epsilon(1e-14));
  CHECK(nn::Tanh::apply(1.0) == doctest::Approx(0.76159415595576488812).epsilon(1e-14));
  CHECK(nn::Tanh::apply(-2.0) == doctest::Approx(-0.96402758007581688395).epsilon(1e-14));
  for (const double x : {-4.0, -1.25, -0.5, 0.0, 0.5, 1.0, 3.0}) {
    constexpr double step = 1e-6;
    const double numeric = (nn::Tanh::apply(x + step) - nn::Tanh::apply(x - step)) / (2 * step);
    CAPTURE(x);
    CHECK(nn::Tanh::gradient(nn::Tanh::apply(x), 3.0) == doctest::Approx(3 * numeric).epsilon(1e-8));
  }
}
