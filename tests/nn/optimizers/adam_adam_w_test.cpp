#include <dist/nn/optimizers/adam.hpp>

#include <cmath>

#include <doctest/doctest.h>
#include <dist/nn/optimizer.hpp>

#include "nn/keras/train.hpp"
#include "recurrence.hpp"

namespace nn = dist::nn;

static_assert(nn::OptimizerFunction<nn::AdamW>);

namespace {

double reference(const nn::AdamW& adam, std::size_t weight) {
  const double beta_1{adam.beta_1};
  const double beta_2{adam.beta_2};
  const double rate{adam.learning_rate};
  double w = static_cast<double>(start_weights[weight]);
  double m = 0;
  double v = 0;
  double largest = 0;
  for (std::size_t step = 0; step < reference_steps; ++step) {
    const double g = gradient_of<double>(weight, step);
    const auto t = static_cast<double>(step + 1);
    w -= w * double{adam.weight_decay} * rate;
    m = beta_1 * m + (1 - beta_1) * g;
    v = beta_2 * v + (1 - beta_2) * g * g;
    largest = std::fmax(largest, v);
    w -= rate * std::sqrt(1 - std::pow(beta_2, t)) / (1 - std::pow(beta_1, t)) * m /
         (std::sqrt(adam.amsgrad ? largest : v) + double{adam.epsilon});
  }
  return w;
}

}  // namespace

TEST_CASE("20 steps agree with the formula in double (spec P11)") {
  for (const nn::AdamW& adam :
       {nn::AdamW{}, nn::AdamW{.learning_rate = 0.01f, .weight_decay = 0.1f}, nn::AdamW{.amsgrad = true}})
    for (std::size_t weight = 0; weight < 4; ++weight) {
      CHECK(run_functor<double>(adam, weight) == doctest::Approx(reference(adam, weight)).epsilon(1e-12));
      CHECK(double{run_functor<float>(adam, weight)} == doctest::Approx(reference(adam, weight)).epsilon(2e-6));
    }
}

TEST_CASE("AdamW is Adam with weight decay, with Keras' defaults") {
  const nn::AdamW adam_w;
  CHECK(adam_w.learning_rate == 1e-3f);
  CHECK(adam_w.weight_decay == 0.004f);
  const nn::With adam{nn::Adam{}, nn::WeightDecay{}};
  for (std::size_t weight = 0; weight < 4; ++weight)
    CHECK(run_functor<double>(adam_w, weight) == run_functor<double>(adam, weight));
  CHECK_NOTHROW(adam_w.check());
  CHECK_THROWS_AS((nn::AdamW{.weight_decay = -1}).check(), dist::InvalidArgument);
  CHECK_THROWS_AS((nn::AdamW{.learning_rate = -1}).check(), dist::InvalidArgument);
  CHECK_THROWS_AS((nn::AdamW{.beta_1 = 1}).check(), dist::InvalidArgument);
  CHECK_THROWS_AS((nn::AdamW{.beta_2 = 1}).check(), dist::InvalidArgument);
  CHECK_THROWS_AS((nn::AdamW{.epsilon = -1}).check(), dist::InvalidArgument);
}

TEST_CASE("10 steps agree with Keras") {
  keras_optimizers::compare(nn::AdamW{.learning_rate = 0.01f, .weight_decay = 0.1f}, keras_optimizers::adam_w);
}
