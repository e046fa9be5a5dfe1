#include <dist/nn/optimizers/adam.hpp>

#include <cmath>
#include <limits>

#include <doctest/doctest.h>

#include "nn/keras/train.hpp"
#include "recurrence.hpp"

namespace nn = dist::nn;

namespace {

double reference(const nn::Adam& adam, std::size_t weight) {
  const double beta_1{adam.beta_1};
  const double beta_2{adam.beta_2};
  double w = static_cast<double>(start_weights[weight]);
  double m = 0;
  double v = 0;
  double largest = 0;
  for (std::size_t step = 0; step < reference_steps; ++step) {
    const double g = gradient_of<double>(weight, step);
    const auto t = static_cast<double>(step + 1);
    m = beta_1 * m + (1 - beta_1) * g;
    v = beta_2 * v + (1 - beta_2) * g * g;
    largest = std::fmax(largest, v);
    const double rate = double{adam.learning_rate} * std::sqrt(1 - std::pow(beta_2, t)) / (1 - std::pow(beta_1, t));
    w -= rate * m / (std::sqrt(adam.amsgrad ? largest : v) + double{adam.epsilon});
  }
  return w;
}

void compare(const nn::Adam& adam, const std::array<float, 4>& keras) {
  for (std::size_t weight = 0; weight < 4; ++weight) {
    const double expected = reference(adam, weight);
    CHECK(run_functor<double>(adam, weight) == doctest::Approx(expected).epsilon(1e-12));
    CHECK(double{run_functor<float>(adam, weight)} == doctest::Approx(expected).epsilon(2e-6));
    CHECK(double{run_functor<float>(adam, weight)} == doctest::Approx(double{keras[weight]}).epsilon(5e-6));
  }
}

}  // namespace

// keras.optimizers.Adam(0.01, …) of Keras 3.15.1 on TensorFlow 2.21.0, with 20 calls apply([g], [v]).
TEST_CASE("20 steps agree with the formula in double and with Keras") {
  compare({.learning_rate = 0.01f}, {0.79239291f, -1.87608731f, 0.483058214f, 0});
  compare({.learning_rate = 0.01f, .amsgrad = true}, {0.79239291f, -1.87608731f, 0.483058214f, 0});
}

TEST_CASE("amsgrad keeps the largest second moment") {
  // With a small beta_2 and decreasing gradients the two differ.
  const nn::Adam plain{.learning_rate = 0.01f, .beta_2 = 0.5f};
  const nn::Adam amsgrad{.learning_rate = 0.01f, .beta_2 = 0.5f, .amsgrad = true};
  CHECK(run_functor<double>(plain, 1) == doctest::Approx(reference(plain, 1)).epsilon(1e-12));
  CHECK(run_functor<double>(amsgrad, 1) == doctest::Approx(reference(amsgrad, 1)).epsilon(1e-12));
  CHECK(run_functor<double>(plain, 1) - run_functor<double>(amsgrad, 1) > 0.01);
}

TEST_CASE("a gradient whose square overflows does not move the weight, as in Keras") {
  for (const bool amsgrad : {false, true}) {
    float weight = 0.5f;
    float slots[3] = {};
    const nn::Adam adam{.amsgrad = amsgrad};
    adam.with_update<float>(1, [&](auto update) { weight = update(weight, 3e19f, slots); });
    CHECK(weight == 0.5f);
    CHECK(slots[1] == std::numeric_limits<float>::infinity());
    // From here on, v += (1 - beta_2) (g^2 - v) is infinity - infinity.
    adam.with_update<float>(2, [&](auto update) { weight = update(weight, 1.0f, slots); });
    CHECK(std::isnan(weight));
  }
}

TEST_CASE("denormal squares are exact if epsilon is 0") {
  // In the first step m / sqrt(v), both corrected, is the gradient's sign.
  for (const float gradient : {1e-17f, 1e-18f, -1e-19f, 1e-20f}) {
    float weight = 0;
    float slots[2] = {};
    nn::Adam{.epsilon = 0}.with_update<float>(1, [&](auto update) { weight = update(weight, gradient, slots); });
    const double rate = 1e-3 * std::sqrt(1 - 0.999) / (1 - 0.9);
    const double expected = -rate * static_cast<double>(slots[0]) / std::sqrt(static_cast<double>(slots[1]));
    CHECK(static_cast<double>(weight) == doctest::Approx(expected).epsilon(1e-5));
    CHECK(std::fabs(weight) == doctest::Approx(1e-3).epsilon(0.02));
  }
}

TEST_CASE("defaults are Keras', and ranges are checked") {
  const nn::Adam adam;
  CHECK(adam.learning_rate == 1e-3f);
  CHECK(adam.beta_1 == 0.9f);
  CHECK(adam.beta_2 == 0.999f);
  CHECK(adam.epsilon == 1e-7f);
  CHECK(!adam.amsgrad);
  CHECK_NOTHROW(adam.check());
  CHECK_THROWS_AS((nn::Adam{.learning_rate = -1}).check(), dist::InvalidArgument);
  CHECK_THROWS_AS((nn::Adam{.beta_1 = 1}).check(), dist::InvalidArgument);
  CHECK_THROWS_AS((nn::Adam{.beta_2 = -0.5f}).check(), dist::InvalidArgument);
  CHECK_THROWS_AS((nn::Adam{.epsilon = -1}).check(), dist::InvalidArgument);
}

TEST_CASE("Adam has two slots, and three with amsgrad") {
  (nn::Adam{}).with_update<float>(1, [](auto update) { CHECK(update.slots.size() == 2); });
  (nn::Adam{.amsgrad = true}).with_update<float>(1, [](auto update) { CHECK(update.slots.size() == 3); });
}

TEST_CASE("10 steps of an optimizer agree with Keras") {
  namespace keras = keras_optimizers;
  keras::compare(nn::Adam{.learning_rate = 0.01f}, keras::adam);
  keras::compare(nn::Adam{.learning_rate = 0.01f, .beta_1 = 0.8f, .beta_2 = 0.9f, .amsgrad = true},
                 keras::adam_amsgrad);
}
