#include <dist/nn/activations/smooth.hpp>

#include <cmath>
#include <initializer_list>
#include <limits>

#include <dist/nn/activation.hpp>

#include <doctest/doctest.h>

namespace nn = dist::nn;

static_assert(nn::Activation<nn::HardSilu>);

TEST_CASE("HardSilu: values, and gradients as in TensorFlow where the function has corners") {
  CHECK(nn::HardSilu::apply(-3.0) == 0);
  CHECK(nn::HardSilu::apply(-1.5) == doctest::Approx(-0.375).epsilon(1e-14));
  CHECK(nn::HardSilu::apply(0.0) == 0);
  CHECK(nn::HardSilu::apply(1.5) == doctest::Approx(1.125).epsilon(1e-14));
  CHECK(nn::HardSilu::apply(3.0) == 3);
  CHECK(nn::HardSilu::apply(-std::numeric_limits<double>::infinity()) == 0);
  CHECK(std::isnan(nn::HardSilu::apply(std::nan(""))));
  for (const double x : {-4.0, -2.5, -0.5, 0.0, 1.0, 2.75, 4.0}) {
    constexpr double step = 1e-6;
    const double numeric = (nn::HardSilu::apply(x + step) - nn::HardSilu::apply(x - step)) / (2 * step);
    CAPTURE(x);
    CHECK(nn::HardSilu::gradient_at(x, 3.0) == doctest::Approx(3 * numeric).epsilon(1e-8));
  }
  CHECK(nn::HardSilu::gradient_at(-3.0, 3.0) == 0);
  CHECK(nn::HardSilu::gradient_at(3.0, 3.0) == 3);
}
