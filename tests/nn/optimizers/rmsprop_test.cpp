#include <dist/nn/optimizers/rmsprop.hpp>

#include <cmath>
#include <limits>

#include <doctest/doctest.h>

#include "nn/keras/train.hpp"
#include "recurrence.hpp"

namespace nn = dist::nn;

namespace {

double reference(const nn::RMSprop& rmsprop, std::size_t weight) {
  const double rho{rmsprop.rho};
  double w = static_cast<double>(start_weights[weight]);
  double v = 0;
  double a = 0;
  double m = 0;
  for (std::size_t step = 0; step < reference_steps; ++step) {
    const double g = gradient_of<double>(weight, step);
    v = rho * v + (1 - rho) * g * g;
    a = rho * a + (1 - rho) * g;
    const double variance = rmsprop.centered ? std::fmax(v - a * a, 0.0) : v;
    m = double{rmsprop.momentum} * m +
        double{rmsprop.learning_rate} * g / std::sqrt(variance + double{rmsprop.epsilon});
    w -= m;
  }
  return w;
}

void compare(const nn::RMSprop& rmsprop, const std::array<float, 4>& keras) {
  for (std::size_t weight = 0; weight < 4; ++weight) {
    const double expected = reference(rmsprop, weight);
    CHECK(run_functor<double>(rmsprop, weight) == doctest::Approx(expected).epsilon(1e-12));
    CHECK(double{run_functor<float>(rmsprop, weight)} == doctest::Approx(expected).epsilon(5e-6));
    CHECK(double{run_functor<float>(rmsprop, weight)} == doctest::Approx(double{keras[weight]}).epsilon(5e-6));
  }
}

}  // namespace

// keras.optimizers.RMSprop(0.01, …) of Keras 3.15.1 on TensorFlow 2.21.0, with 20 calls apply([g], [v]).
TEST_CASE("20 steps agree with the formula in double and with Keras") {
  compare({.learning_rate = 0.01f}, {0.613951445f, -1.87453294f, 0.48637107f, 0});
  compare({.learning_rate = 0.01f, .momentum = 0.9f}, {-1.51107037f, -1.08932006f, 0.335456371f, 0});
  compare({.learning_rate = 0.01f, .rho = 0.8f, .centered = true}, {0.34376055f, -1.83968353f, 0.488461584f, 0});
  compare({.learning_rate = 0.01f, .momentum = 0.5f, .centered = true},
          {-0.0703614354f, -1.71734822f, 0.460989505f, 0});
}

TEST_CASE("a variance that becomes negative by rounding gives no NaN") {
  const nn::RMSprop rmsprop{.rho = 0.5f, .epsilon = 0, .centered = true};
  float weight = 1;
  float slots[2] = {};
  for (std::int64_t step = 1; step <= 200; ++step)
    rmsprop.with_update<float>(step, [&](auto update) { weight = update(weight, 3.3333333f, slots); });
  CHECK(std::isfinite(weight));
}

TEST_CASE("a gradient whose square overflows does not move the weight, and undefined steps give NaN, as in Keras") {
  const auto step = [](const nn::RMSprop& rmsprop, float gradient) {
    float weight = 0.5f;
    float slots[3] = {};
    rmsprop.with_update<float>(1, [&](auto update) { weight = update(weight, gradient, slots); });
    return weight;
  };
  // lr g / sqrt(infinity) = 0; the average gradient's square is finite.
  CHECK(step({}, 3e19f) == 0.5f);
  CHECK(step({}, -3e38f) == 0.5f);
  CHECK(step({.momentum = 0.9f}, 3e19f) == 0.5f);
  CHECK(step({.centered = true}, 3e19f) == 0.5f);
  // The largest finite square: 1e-3 g / sqrt(0.1 g^2).
  CHECK(step({}, 1.8e19f) == doctest::Approx(0.5 - 1e-3 / std::sqrt(0.1)).epsilon(1e-6));
  // 0 times infinity.
  CHECK(std::isnan(step({}, std::numeric_limits<float>::infinity())));
  CHECK(std::isnan(step({.centered = true}, std::numeric_limits<float>::quiet_NaN())));
  // An element with gradient 0 does not move, while Keras divides 0 by 0.
  CHECK(step({.epsilon = 0}, 0.0f) == 0.5f);
}

TEST_CASE("denormal squares are exact if epsilon is 0") {
  for (const float gradient : {1e-18f, 1e-19f, -1e-20f, 1e-21f}) {
    float weight = 0;
    float slots[1] = {};
    nn::RMSprop{.epsilon = 0}.with_update<float>(1, [&](auto update) { weight = update(weight, gradient, slots); });
    const double expected = -1e-3 * static_cast<double>(gradient) / std::sqrt(static_cast<double>(slots[0]));
    CHECK(static_cast<double>(weight) == doctest::Approx(expected).epsilon(1e-6));
    CHECK(std::fabs(weight) == doctest::Approx(1e-3 / std::sqrt(0.1)).epsilon(0.01));
  }
}

TEST_CASE("defaults are Keras', and ranges are checked") {
  const nn::RMSprop rmsprop;
  CHECK(rmsprop.learning_rate == 1e-3f);
  CHECK(rmsprop.rho == 0.9f);
  CHECK(rmsprop.momentum == 0.0f);
  CHECK(rmsprop.epsilon == 1e-7f);
  CHECK(!rmsprop.centered);
  CHECK_NOTHROW(rmsprop.check());
  CHECK_THROWS_AS((nn::RMSprop{.learning_rate = -1}).check(), dist::InvalidArgument);
  CHECK_THROWS_AS((nn::RMSprop{.rho = 1}).check(), dist::InvalidArgument);
  CHECK_THROWS_AS((nn::RMSprop{.momentum = -0.1f}).check(), dist::InvalidArgument);
  CHECK_THROWS_AS((nn::RMSprop{.epsilon = -1}).check(), dist::InvalidArgument);
}

TEST_CASE("slots depend on the fields") {
  const auto slots = [](const nn::RMSprop& rmsprop) {
    std::size_t count = 0;
    rmsprop.with_update<float>(1, [&](auto update) {
      count = update.slots.size();
      CHECK(update.slots[0] == "velocity");
    });
    return count;
  };
  CHECK(slots({}) == 1);
  CHECK(slots({.momentum = 0.5f}) == 2);
  CHECK(slots({.centered = true}) == 2);
  CHECK(slots({.momentum = 0.5f, .centered = true}) == 3);
}

TEST_CASE("10 steps of an optimizer agree with Keras") {
  namespace keras = keras_optimizers;
  keras::compare(nn::RMSprop{.learning_rate = 0.01f}, keras::rmsprop);
  keras::compare(nn::RMSprop{.learning_rate = 0.01f, .rho = 0.8f, .momentum = 0.5f, .centered = true},
                 keras::rmsprop_centered);
}
