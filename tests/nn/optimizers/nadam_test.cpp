#include <dist/nn/optimizers/nadam.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include <doctest/doctest.h>

#include "nn/keras/train.hpp"
#include "recurrence.hpp"

namespace nn = dist::nn;

static_assert(nn::OptimizerFunction<nn::Nadam>);

namespace {

double reference(const nn::Nadam& nadam, std::size_t weight) {
  const double beta_1{nadam.beta_1}, beta_2{nadam.beta_2};
  double w = static_cast<double>(start_weights[weight]);
  double m = 0, v = 0, product = 1;
  for (std::size_t step = 0; step < reference_steps; ++step) {
    const double g = gradient_of<double>(weight, step);
    const auto t = static_cast<double>(step + 1);
    const double now = beta_1 * (1 - 0.5 * std::pow(0.96, t)), next = beta_1 * (1 - 0.5 * std::pow(0.96, t + 1));
    product *= now;
    m = beta_1 * m + (1 - beta_1) * g;
    v = beta_2 * v + (1 - beta_2) * g * g;
    const double direction = next * m / (1 - product * next) + (1 - now) * g / (1 - product);
    w -= double{nadam.learning_rate} * direction / (std::sqrt(v / (1 - std::pow(beta_2, t))) + double{nadam.epsilon});
  }
  return w;
}

}  // namespace

TEST_CASE("20 steps of Nadam agree with the formula in double") {
  for (const nn::Nadam& nadam :
       {nn::Nadam{}, nn::Nadam{.learning_rate = 0.01f, .beta_1 = 0.5f, .beta_2 = 0.75f, .epsilon = 1e-3f}})
    for (std::size_t weight = 0; weight < 4; ++weight) {
      CHECK(run_functor<double>(nadam, weight) == doctest::Approx(reference(nadam, weight)).epsilon(1e-12));
      CHECK(double{run_functor<float>(nadam, weight)} == doctest::Approx(reference(nadam, weight)).epsilon(5e-6));
    }
}

// Keras rounds 0.96 to float32.
TEST_CASE("10 steps of Nadam agree with Keras") {
  keras_optimizers::compare(nn::Nadam{.learning_rate = 0.01f}, keras_optimizers::nadam, 1e-8);
}

TEST_CASE("the shares of a step of Nadam are the products of all earlier factors, in step 2,000 too") {
  const nn::Nadam nadam{.beta_1 = 0.99999f};
  double product = 1;
  for (std::int64_t step = 1; step <= 2000; ++step) {
    const auto factor = [&](std::int64_t of) {
      return double{nadam.beta_1} * (1 - 0.5 * std::pow(0.96, static_cast<double>(of)));
    };
    product *= factor(step);
    if (step % 400 != 1 && step != 2000) continue;
    CAPTURE(step);
    nadam.with_update<double>(step, [&](const auto update) {
      CHECK(update.share_of_momentum ==
            doctest::Approx(factor(step + 1) / (1 - product * factor(step + 1))).epsilon(1e-12));
      CHECK(update.share_of_gradient == doctest::Approx((1 - factor(step)) / (1 - product)).epsilon(1e-12));
    });
  }
}

TEST_CASE("a gradient whose square overflows does not move the weight under Nadam, and NaN stays NaN") {
  const auto step = [](float gradient) {
    float weight = 0.5f;
    float slots[2] = {};
    nn::Nadam{}.with_update<float>(1, [&](auto update) { weight = update(weight, gradient, slots); });
    return weight;
  };
  CHECK(step(3e19f) == 0.5f);
  CHECK(step(0) == 0.5f);
  CHECK(std::isnan(step(std::numeric_limits<float>::quiet_NaN())));
}

TEST_CASE("defaults of Nadam are Keras', and ranges are checked") {
  const nn::Nadam nadam;
  CHECK(nadam.learning_rate == 1e-3f);
  CHECK(nadam.beta_1 == 0.9f);
  CHECK(nadam.beta_2 == 0.999f);
  CHECK(nadam.epsilon == 1e-7f);
  CHECK_NOTHROW(nadam.check());
  CHECK_THROWS_AS((nn::Nadam{.learning_rate = -1}).check(), dist::InvalidArgument);
  CHECK_THROWS_AS((nn::Nadam{.beta_1 = 1}).check(), dist::InvalidArgument);
  CHECK_THROWS_AS((nn::Nadam{.beta_2 = -1}).check(), dist::InvalidArgument);
  CHECK_THROWS_AS((nn::Nadam{.epsilon = -1}).check(), dist::InvalidArgument);
}
