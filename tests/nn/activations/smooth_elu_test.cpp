#include <dist/nn/activations/smooth.hpp>

#include <cmath>
#include <initializer_list>
#include <limits>

#include <dist/nn/activation.hpp>

#include <doctest/doctest.h>

namespace nn = dist::nn;

static_assert(nn::Activation<nn::Elu<>>);

TEST_CASE("Elu: values, and the gradient against central differences") {
  const auto check = []<class Function>(Function, double alpha) {
    CHECK(Function::apply(2.0) == 2);
    CHECK(Function::apply(0.0) == 0);
    CHECK(Function::apply(-1.0) == doctest::Approx(alpha * -0.63212055882855767840).epsilon(1e-14));
    CHECK(Function::apply(-1e-12) == doctest::Approx(alpha * -1e-12).epsilon(1e-10));
    CHECK(Function::apply(-std::numeric_limits<double>::infinity()) == -alpha);
    for (const double x : {-4.0, -1.25, -0.5, 0.5, 3.0}) {
      constexpr double step = 1e-6;
      const double numeric = (Function::apply(x + step) - Function::apply(x - step)) / (2 * step);
      CAPTURE(x);
      CHECK(Function::gradient(Function::apply(x), 3.0) == doctest::Approx(3 * numeric).epsilon(1e-8));
    }
    CHECK(Function::gradient(0.0, 3.0) == 3 * alpha);
  };
  check(nn::Elu<>{}, 1);
  check(nn::Elu<1, 4>{}, 0.25);
}
