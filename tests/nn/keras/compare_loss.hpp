// Compares a loss with Keras, and its gradient with finite differences.
#pragma once

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>

#include <dist/core/shape.hpp>
#include <dist/core/tensor.hpp>
#include <dist/nn/loss.hpp>
#include <dist/strategy/default.hpp>

#include <doctest/doctest.h>

#include "nn/keras/losses.hpp"

namespace keras_losses {

template <class T>
struct Outputs {
  dist::TensorView<const T> values;
  dist::TensorView<T> gradient;
};

/// The outputs of a case, its targets as labels or rows, and its weights.
template <class T, class Target>
struct Batch {
  dist::Tensor<T> outputs{dist::Shape{4, 3}};
  dist::Tensor<T> gradient{dist::Shape{4, 3}};
  dist::Tensor<Target> targets{std::integral<Target> ? dist::Shape{4} : dist::Shape{4, 3}};
  dist::Tensor<T> sample_weights{dist::Shape{4}};

  explicit Batch(const Case& of) {
    for (std::size_t i = 0; i < 12; ++i) outputs[i] = static_cast<T>(of.outputs[i]);
    for (std::size_t i = 0; i < targets.size(); ++i) targets[i] = static_cast<Target>(of.targets[i]);
    for (std::size_t i = 0; i < 4; ++i) sample_weights[i] = static_cast<T>(weights[i]);
  }

  template <class L, class... Weights>
  double loss(const L& function, const Weights&... given) {
    dist::Default strategy;
    return strategy.run([&](auto& replica) {
      return static_cast<double>(
          dist::nn::compute_loss(function, replica, Outputs<T>{outputs.view(), gradient.view()}, targets, 4, given...)
              .value());
    });
  }
};

/// Fails unless values and gradients equal Keras', in float up to rounding, and gradients equal finite differences.
template <class Target = double, class L>
void compare(const L& loss, const Case& keras) {
  Batch<double, Target> batch{keras};
  CHECK(batch.loss(loss) == doctest::Approx(keras.loss).epsilon(1e-12));
  CHECK(batch.loss(loss, batch.sample_weights) == doctest::Approx(keras.weighted_loss).epsilon(1e-12));
  for (std::size_t i = 0; i < 12; ++i)
    CHECK(std::fabs(batch.gradient[i] - keras.weighted_gradient[i]) <
          1e-12 * std::max(1.0, std::fabs(keras.weighted_gradient[i])));

  Batch<float, Target> single{keras};
  CHECK(single.loss(loss, single.sample_weights) == doctest::Approx(keras.weighted_loss).epsilon(1e-5));
  for (std::size_t i = 0; i < 12; ++i)
    CHECK(static_cast<double>(single.gradient[i]) == doctest::Approx(keras.weighted_gradient[i]).epsilon(1e-5));

  const dist::Tensor<double> gradient = batch.gradient;
  for (std::size_t i = 0; i < 12; ++i) {
    const double at = batch.outputs[i], step = 1e-9;
    const auto loss_at = [&](double output) {
      batch.outputs[i] = output;
      return batch.loss(loss, batch.sample_weights);
    };
    const double difference = loss_at(at + step) - loss_at(at - step);
    batch.outputs[i] = at;
    CHECK(std::fabs(gradient[i] - difference / (2 * step)) < 1e-5);
  }
}

}  // namespace keras_losses
