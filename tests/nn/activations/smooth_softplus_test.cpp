#include <dist/nn/activations/smooth.hpp>

#include <cmath>
#include <initializer_list>
#include <limits>

#include <dist/nn/activation.hpp>

#include <doctest/doctest.h>

namespace nn = dist::nn;

static_assert(nn::Activation<nn::Softplus>);

TEST_CASE("Softplus: values, without overflow, and the gradient against central differences") {
  CHECK(nn::Softplus::apply(0.0) == doctest::Approx(0.69314718055994530942).epsilon(1e-14));
  CHECK(nn::Softplus::apply(1.0) == doctest::Approx(1.31326168751822286).epsilon(1e-14));
  CHECK(nn::Softplus::apply(-1.0) == doctest::Approx(0.31326168751822283).epsilon(1e-14));
  CHECK(nn::Softplus::apply(1000.0F) == 1000.0F);
  CHECK(nn::Softplus::apply(-1000.0F) == 0);
  CHECK(nn::Softplus::apply(-30.0) == doctest::Approx(std::exp(-30.0)).epsilon(1e-12));
  CHECK(std::isnan(nn::Softplus::apply(std::nan(""))));
  for (const double x : {-4.0, -1.25, -0.5, 0.0, 0.5, 1.0, 3.0}) {
    constexpr double step = 1e-6;
    const double numeric = (nn::Softplus::apply(x + step) - nn::Softplus::apply(x - step)) / (2 * step);
    CAPTURE(x);
    CHECK(nn::Softplus::gradient(nn::Softplus::apply(x), 3.0) == doctest::Approx(3 * numeric).epsilon(1e-8));
  }
}
