#include <dist/nn/activations/smooth.hpp>

#include <initializer_list>

#include <dist/nn/activation.hpp>

#include <doctest/doctest.h>

namespace nn = dist::nn;

static_assert(nn::Activation<nn::Gelu>);

TEST_CASE("Gelu: values, and the gradient against central differences") {
  CHECK(nn::Gelu::apply(0.0) == doctest::Approx(0.0).epsilon(1e-14));
  CHECK(nn::Gelu::apply(1.0) == doctest::Approx(0.84134474606854294859).epsilon(1e-14));
  CHECK(nn::Gelu::apply(-1.0) == doctest::Approx(-0.15865525393145705141).epsilon(1e-14));
  for (const double x : {-4.0, -1.25, -0.5, 0.0, 0.5, 1.0, 3.0}) {
    constexpr double step = 1e-6;
    const double numeric = (nn::Gelu::apply(x + step) - nn::Gelu::apply(x - step)) / (2 * step);
    CAPTURE(x);
    CHECK(nn::Gelu::gradient_at(x, 3.0) == doctest::Approx(3 * numeric).epsilon(1e-8));
  }
}
