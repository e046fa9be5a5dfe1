// The training of make_fixtures.py with the library's optimizers.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <span>
#include <string>
#include <utility>

#include <dist/core/shape.hpp>
#include <dist/nn/optimizer.hpp>
#include <dist/nn/parameter.hpp>
#include <dist/strategy/default.hpp>
#include <dist/strategy/mirrored.hpp>

#include <doctest/doctest.h>

#include "nn/keras/optimizers.hpp"

namespace keras_optimizers {

/// The kernel and the bias, with padding in between.
template <class S>
struct Net {
  static constexpr std::array<dist::nn::Parameter, 2> parameter_list{
      dist::nn::Parameter{"dense", 0, "kernel", dist::Shape{5, 3}, 0},
      dist::nn::Parameter{"dense", 0, "bias", dist::Shape{3}, 16},
  };
  static constexpr std::size_t size = 32;
  /// The place of element `i` of both parameters.
  static constexpr std::size_t place(std::size_t i) { return i < kernel_elements ? i : 16 + i - kernel_elements; }

  explicit Net(S& strategy)
      : weights(strategy.template variable<double>(
            dist::Shape{size},
            [](dist::TensorView<double> all) {
              for (std::size_t i = 0; i < elements; ++i) all[place(i)] = std::sin(static_cast<double>(i) + 1);
            },
            "weights")),
        slopes(strategy.template buffer<double>(dist::Shape{size}, "slopes")) {}

  auto& parameters() { return weights; }
  auto& gradients() { return slopes; }
  static std::span<const dist::nn::Parameter> layout() { return parameter_list; }

  decltype(std::declval<S&>().template variable<double>(dist::Shape{}, 0.0, std::string{})) weights;
  decltype(std::declval<S&>().template buffer<double>(dist::Shape{}, std::string{})) slopes;
};

template <class S, class O>
double largest_difference(S& strategy, const O& function, const Weights& expected) {
  Net<S> net{strategy};
  dist::nn::Optimizer optimizer{strategy, net, function};
  for (std::size_t step = 0; step < steps; ++step)
    strategy.run([&](auto& replica) {
      const auto mine = net.slopes.component(replica);
      for (std::size_t i = 0; i < elements; ++i) {
        const double whole = std::cos(0.37 * static_cast<double>(i) + static_cast<double>(step)) *
                             static_cast<double>(1 + i % 4) * (i % 7 != 0 ? 1 : 0);
        mine[Net<S>::place(i)] = whole / static_cast<double>(replica.num_replicas_in_sync());
      }
      optimizer.apply_gradients(replica);
    });
  const auto weights = net.weights.read(strategy.scope());
  double worst = 0;
  for (std::size_t i = 0; i < elements; ++i) {
    const double difference = std::fabs(weights[Net<S>::place(i)] - expected[i]);
    worst = std::isnan(difference) ? 1e300 : std::fmax(worst, difference);
  }
  return worst;
}

/// Fails unless the weights after all steps equal Keras', with one replica and with two.
template <class O>
void compare(const O& function, const Weights& expected, double tolerance = 1e-12) {
  dist::Default one;
  CHECK(largest_difference(one, function, expected) < tolerance);
  dist::Mirrored<dist::ThreadAllReduce> two{2};
  CHECK(largest_difference(two, function, expected) < tolerance);
}

}  // namespace keras_optimizers
