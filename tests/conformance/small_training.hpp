// Training of a small network on a few points, compared between strategies: with Model::fit, and with a custom loop.
// The strategy's number of replicas must divide `global_batch`.
#pragma once

#include <cmath>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include <dist/core/reduce_op.hpp>
#include <dist/core/tensor.hpp>
#include <dist/data/batch.hpp>
#include <dist/data/distributed_dataset.hpp>
#include <dist/data/tensor_slices.hpp>
#include <dist/nn/activation.hpp>
#include <dist/nn/layers/dense.hpp>
#include <dist/nn/losses/reduced.hpp>
#include <dist/nn/losses/regression.hpp>
#include <dist/nn/network.hpp>
#include <dist/nn/optimizer.hpp>
#include <dist/nn/optimizers/sgd.hpp>
#include <dist/nn/sequential.hpp>
#include <dist/train/model.hpp>

#include <doctest/doctest.h>

namespace conformance::small {

namespace nn = dist::nn;

using Net = nn::Sequential<nn::Input<4>, nn::Dense<8, nn::Relu>, nn::Dense<1>>;

constexpr std::size_t examples = 32;
constexpr std::size_t global_batch = 8;
constexpr float rate = 0.0625f;

inline auto points() {
  dist::Tensor<float> x{dist::Shape{examples, 4}};
  dist::Tensor<float> y{dist::Shape{examples, 1}};
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(std::sin(1.3 * static_cast<double>(i)));
  for (std::size_t row = 0; row < examples; ++row) y[row] = x[4 * row] - 2 * x[4 * row + 1] * x[4 * row + 3];
  return dist::data::tensor_slices(std::move(x), std::move(y)) | dist::data::batch(global_batch);
}

struct Trained {
  std::vector<double> losses;
  std::vector<double> validation;
  std::vector<float> weights;
};

template <class S, class O, class L>
Trained fit(std::unique_ptr<S> strategy, const O& optimizer, const L& loss) {
  nn::Network<Net> net{*strategy, 3};
  nn::Model model{*strategy, net, optimizer, loss};
  const nn::History history = model.fit(points(), {.epochs = 4, .validation = points(), .verbose = 0});
  Trained trained;
  for (const double value : history["loss"]) trained.losses.push_back(value);
  for (const double value : history["val_loss"]) trained.validation.push_back(value);
  const auto weights = net.parameters().read(strategy->scope());
  trained.weights.assign(weights.data(), weights.data() + weights.size());
  return trained;
}

/// Compares `trained` with `expected`, whose losses are `factor` times smaller.
inline void check_same(const Trained& trained, const Trained& expected, double factor = 1) {
  REQUIRE(trained.losses.size() == expected.losses.size());
  for (std::size_t epoch = 0; epoch < expected.losses.size(); ++epoch) {
    CHECK(trained.losses[epoch] == doctest::Approx(factor * expected.losses[epoch]).epsilon(1e-5).scale(0));
    CHECK(trained.validation[epoch] == doctest::Approx(factor * expected.validation[epoch]).epsilon(1e-5).scale(0));
  }
  double worst = 0;
  for (std::size_t i = 0; i < expected.weights.size(); ++i)
    worst = std::fmax(worst, static_cast<double>(std::fabs(trained.weights[i] - expected.weights[i])));
  CHECK(worst < 1e-5);
}

/// A custom loop, with a loss that is summed and divided by the global batch.
template <class S>
std::vector<double> loop(std::unique_ptr<S> strategy) {
  nn::Network<Net> net{*strategy, 3};
  nn::Optimizer optimizer{*strategy, net, nn::SGD{.learning_rate = rate / global_batch}};
  const nn::Reduced loss_function{nn::MeanSquaredError{}, nn::Reduction::Sum{}};
  std::vector<double> means;
  for (int epoch = 0; epoch < 4; ++epoch) {
    double total = 0;
    for (auto&& batch : strategy->distribute_dataset(points())) {
      const auto losses = strategy->run(
          [&](auto& replica, const auto& part) {
            const auto outputs = net.forward(replica, part.x);
            const auto loss = loss_function(replica, outputs, part.y);
            net.backward(replica, loss);
            optimizer.apply_gradients(replica);
            return static_cast<double>(loss.value());
          },
          batch);
      total += strategy->reduce(dist::sum, losses);
    }
    means.push_back(total / examples);
  }
  return means;
}

inline const nn::SGD descent{.learning_rate = rate};

}  // namespace conformance::small
