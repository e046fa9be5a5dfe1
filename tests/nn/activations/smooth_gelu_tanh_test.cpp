#include <dist/nn/activations/smooth.hpp>

#include <cmath>
#include <initializer_list>
#include <limits>

#include <dist/nn/activation.hpp>

#include <doctest/doctest.h>

namespace nn = dist::nn;

static_assert(nn::Activation<nn::GeluTanh>);

TEST_CASE("GeluTanh: values, the distance from Gelu, and the gradient against central differences") {
  CHECK(nn::GeluTanh::apply(0.0) == 0);
  CHECK(nn::GeluTanh::apply(1.0) == doctest::Approx(0.84119199060827670).epsilon(1e-14));
  CHECK(nn::GeluTanh::apply(-1.0) == doctest::Approx(-0.15880800939172324).epsilon(1e-14));
  double largest = 0;
  for (const double x : {-4.0, -2.25, -1.25, -0.5, 0.0, 0.5, 1.0, 2.25, 3.0}) {
    constexpr double step = 1e-6;
    const double numeric = (nn::GeluTanh::apply(x + step) - nn::GeluTanh::apply(x - step)) / (2 * step);
    CAPTURE(x);
    CHECK(nn::GeluTanh::gradient_at(x, 3.0) == doctest::Approx(3 * numeric).epsilon(1e-8));
    largest = std::fmax(largest, std::fabs(nn::GeluTanh::apply(x) - nn::Gelu::apply(x)));
  }
  CHECK(largest < 5e-4);
  CHECK(largest > 4e-4);
}
