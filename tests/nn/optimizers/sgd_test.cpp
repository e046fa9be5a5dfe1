#include <dist/nn/optimizers/sgd.hpp>

#include <doctest/doctest.h>

#include "nn/keras/train.hpp"
#include "recurrence.hpp"

namespace nn = dist::nn;

namespace {

double reference(double rate, double momentum, bool nesterov, std::size_t weight) {
  double w = static_cast<double>(start_weights[weight]);
  double m = 0;
  for (std::size_t step = 0; step < reference_steps; ++step) {
    const double g = gradient_of<double>(weight, step);
    m = momentum * m - rate * g;
    w += nesterov ? momentum * m - rate * g : m;
  }
  return w;
}

void compare(const nn::SGD& sgd, const std::array<float, 4>& keras) {
  for (std::size_t weight = 0; weight < 4; ++weight) {
    const double expected = reference(double{sgd.learning_rate}, double{sgd.momentum}, sgd.nesterov, weight);
    CHECK(run_functor<double>(sgd, weight) == doctest::Approx(expected).epsilon(1e-12));
    CHECK(double{run_functor<float>(sgd, weight)} == doctest::Approx(expected).epsilon(2e-6));
    CHECK(double{run_functor<float>(sgd, weight)} == doctest::Approx(double{keras[weight]}).epsilon(2e-6));
  }
}

}  // namespace

// keras.optimizers.SGD(0.1, …) of Keras 3.15.1 on TensorFlow 2.21.0, with 20 calls apply([g], [v]).
TEST_CASE("20 steps agree with the formula in double and with Keras") {
  compare({.learning_rate = 0.1f}, {-1.10000002f, -1.64022601f, 0.5f, 0});
  compare({.learning_rate = 0.1f, .momentum = 0.9f}, {-9.11522865f, 0.74798286f, 0.395976216f, 0});
  compare({.learning_rate = 0.1f, .momentum = 0.9f, .nesterov = true}, {-10.2037048f, 0.832958639f, 0.406378537f, 0});
}

TEST_CASE("defaults are Keras', and ranges are checked") {
  const nn::SGD sgd;
  CHECK(sgd.learning_rate == 0.01f);
  CHECK(sgd.momentum == 0.0f);
  CHECK(!sgd.nesterov);
  CHECK_NOTHROW(sgd.check());
  CHECK_THROWS_AS((nn::SGD{.learning_rate = -1}).check(), dist::InvalidArgument);
  CHECK_THROWS_AS((nn::SGD{.momentum = 1}).check(), dist::InvalidArgument);
}

TEST_CASE("only momentum needs a slot") {
  (nn::SGD{}).with_update<float>(1, [](auto update) { CHECK(update.slots.size() == 0); });
  (nn::SGD{.momentum = 0.5f}).with_update<float>(1, [](auto update) { CHECK(update.slots.size() == 1); });
}

TEST_CASE("10 steps of an optimizer agree with Keras") {
  namespace keras = keras_optimizers;
  keras::compare(nn::SGD{.learning_rate = 0.1f}, keras::sgd);
  keras::compare(nn::SGD{.learning_rate = 0.1f, .momentum = 0.9f}, keras::sgd_momentum);
  keras::compare(nn::SGD{.learning_rate = 0.1f, .momentum = 0.9f, .nesterov = true}, keras::sgd_nesterov);
}
