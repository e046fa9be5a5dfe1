#include <dist/nn/losses/regression.hpp>

#include <doctest/doctest.h>
#include <dist/dist.hpp>

#include "nn/keras/compare_loss.hpp"

namespace nn = dist::nn;

namespace {

struct Outputs {
  dist::TensorView<const double> values;
  dist::TensorView<double> gradient;
};

dist::Tensor<double> filled(dist::Shape shape, std::initializer_list<double> values) {
  dist::Tensor<double> tensor{shape};
  std::size_t i = 0;
  for (const double value : values) tensor[i++] = value;
  return tensor;
}

}  // namespace

TEST_CASE("the loss is the mean over the last axis per example, over the global batch (spec P01)") {
  dist::Default strategy;
  const auto outputs = filled(dist::Shape{2, 3}, {1, 2, 3, 0, 0, 6});
  const auto targets = filled(dist::Shape{2, 3}, {1, 0, 0, 0, 0, 0});
  dist::Tensor<double> gradient{dist::Shape{2, 3}};
  const auto loss = strategy.run([&](auto& replica) {
    return nn::mean_squared_error(replica, Outputs{outputs.view(), gradient.view()}, targets, 4);
  });
  // Examples: (0 + 4 + 9) / 3 and 36 / 3.
  CHECK(loss.total() == doctest::Approx(13.0 / 3 + 12));
  CHECK(loss.value() == doctest::Approx((13.0 / 3 + 12) / 4));
  // 2 (output - target) / 3 / 4
  const double expected[] = {0, 2.0 / 6, 3.0 / 6, 0, 0, 1};
  for (std::size_t i = 0; i < 6; ++i) CHECK(gradient[i] == doctest::Approx(expected[i]));
}

TEST_CASE("outputs [rows, 1] and targets [rows] are the same examples") {
  dist::Default strategy;
  const auto outputs = filled(dist::Shape{2, 1}, {3, 5});
  dist::Tensor<float> targets{dist::Shape{2}};
  targets[0] = 1.0f, targets[1] = 5.0f;
  dist::Tensor<double> gradient{dist::Shape{2, 1}};
  const auto loss = strategy.run([&](auto& replica) {
    return nn::mean_squared_error(replica, Outputs{outputs.view(), gradient.view()}, targets, 2);
  });
  CHECK(loss.value() == 2.0);
  CHECK(gradient[0] == 2.0);
  CHECK(gradient[1] == 0.0);
}

TEST_CASE("targets of another shape are rejected, but empty ones are accepted") {
  dist::Default strategy;
  dist::Tensor<double> outputs{dist::Shape{2, 3}};
  dist::Tensor<double> targets{dist::Shape{2, 4}};
  const auto run = [&] {
    return strategy.run([&](auto& replica) {
      return nn::mean_squared_error(replica, Outputs{outputs.view(), outputs.view()}, targets, 2).value();
    });
  };
  CHECK_THROWS_AS(run(), dist::ShapeMismatch);
  outputs.resize(dist::Shape{0, 3});
  targets.resize(dist::Shape{0, 3});
  CHECK(run() == 0.0);
}

TEST_CASE("sample weights scale losses and gradients, not the batch size (spec P01)") {
  dist::Default strategy;
  const auto outputs = filled(dist::Shape{2, 3}, {1, 2, 3, 4, 5, 6});
  dist::Tensor<double> targets{dist::Shape{2, 3}};
  dist::Tensor<double> gradient{dist::Shape{2, 3}};
  dist::Tensor<float> weights{dist::Shape{2, 1}};
  weights[0] = 3.0f, weights[1] = 0.0f;
  const auto loss = strategy.run([&](auto& replica) {
    return nn::mean_squared_error(replica, Outputs{outputs.view(), gradient.view()}, targets, 4, weights);
  });
  CHECK(loss.value() == doctest::Approx(3 * (1 + 4 + 9) / 3.0 / 4));
  CHECK(loss.examples() == 2);
  for (std::size_t i = 0; i < 6; ++i)
    CHECK(gradient[i] == doctest::Approx(i < 3 ? 3 * 2 * static_cast<double>(i + 1) / 3 / 4 : 0));
  weights.resize(dist::Shape{1, 1});
  const auto run = [&] {
    return strategy.run([&](auto& replica) {
      return nn::mean_squared_error(replica, Outputs{outputs.view(), gradient.view()}, targets, 4, weights).value();
    });
  };
  CHECK_THROWS_WITH_AS(
      run(),
      "mean_squared_error got sample weights that do not fit the outputs (outputs [2, 3], weights [1, 1])."
      " Give one weight per example, or none.",
      dist::ShapeMismatch);
}

TEST_CASE("values and gradients agree with Keras, and gradients with finite differences") {
  keras_losses::compare(nn::MeanSquaredError{}, keras_losses::mean_squared_error);
}
