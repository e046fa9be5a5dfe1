// Training results do not depend on the form of the loss's reduction, nor on the number of replicas (spec P05, P06,
// P24).
#include <cmath>
#include <cstddef>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <conformance/small_training.hpp>
#include <dist/data/distributed_dataset.hpp>
#include <dist/dist.hpp>
#include <dist/nn/losses/reduced.hpp>
#include <dist/nn/losses/regression.hpp>
#include <dist/nn/network.hpp>
#include <dist/nn/optimizers/sgd.hpp>
#include <dist/nn/optimizers/with.hpp>
#include <dist/nn/regularizer.hpp>
#include <dist/strategy/central_storage.hpp>
#include <dist/train/model.hpp>

namespace {

namespace nn = dist::nn;
using namespace conformance::small;

using Mirrored = dist::Mirrored<dist::ThreadAllReduce>;
using Central = dist::CentralStorage<dist::Cpu>;
/// Calls `check` with strategies of 1, 2, 3, 4 and 8 replicas that divide the global batch.
void with_strategies(auto check) {
  check(std::make_unique<dist::OneDevice<dist::Cpu>>());
  for (const std::size_t replicas : {1U, 2U, 4U, 8U}) {
    check(std::make_unique<Mirrored>(replicas));
    check(std::make_unique<Central>(replicas));
  }
}

}  // namespace

TEST_CASE("Auto and SumOverBatchSize train as without a strategy (spec P05, P24)") {
  const Trained expected = fit(std::make_unique<dist::Default>(), descent, nn::MeanSquaredError{});
  CHECK(expected.losses.back() < 0.8 * expected.losses.front());
  with_strategies([&](auto strategy) {
    using S = typename decltype(strategy)::element_type;
    const std::size_t replicas = strategy->num_replicas_in_sync();
    const std::string name = strategy->describe();
    CAPTURE(name);
    check_same(fit(std::move(strategy), descent, nn::MeanSquaredError{}), expected);
    const nn::Reduced loss{nn::MeanSquaredError{}, nn::Reduction::SumOverBatchSize{}};
    if constexpr (std::is_constructible_v<S, std::size_t>)
      check_same(fit(std::make_unique<S>(replicas), descent, loss), expected);
  });
}

TEST_CASE("Sum trains with gradients of the sum, and reports the total of a global batch (spec P05, P06, P24)") {
  const Trained expected = fit(std::make_unique<dist::Default>(), descent, nn::MeanSquaredError{});
  const nn::SGD smaller{.learning_rate = rate / global_batch};
  const nn::Reduced loss{nn::MeanSquaredError{}, nn::Reduction::Sum{}};
  check_same(fit(std::make_unique<dist::Default>(), smaller, loss), expected, global_batch);
  with_strategies([&](auto strategy) {
    const std::string name = strategy->describe();
    CAPTURE(name);
    check_same(fit(std::move(strategy), smaller, loss), expected, global_batch);
  });
}

TEST_CASE("a custom loop with a summed loss trains the same way (spec P04, P07, P24)") {
  const Trained expected = fit(std::make_unique<dist::Default>(), descent, nn::MeanSquaredError{});
  with_strategies([&](auto strategy) {
    const std::string name = strategy->describe();
    CAPTURE(name);
    const std::vector<double> means = loop(std::move(strategy));
    for (std::size_t epoch = 0; epoch < means.size(); ++epoch)
      CHECK(means[epoch] == doctest::Approx(expected.losses[epoch]).epsilon(1e-5).scale(0));
  });
}

TEST_CASE("regularisation counts once for any number of replicas (spec P03, P05, P06)") {
  const nn::Regularized loss{nn::MeanSquaredError{}, nn::L2{0.0625f}};
  const Trained expected = fit(std::make_unique<dist::Default>(), descent, loss);
  with_strategies([&](auto strategy) {
    const std::string name = strategy->describe();
    CAPTURE(name);
    check_same(fit(std::move(strategy), descent, loss), expected);
  });
  // Reports the loss with the penalty; trains with both.
  const nn::SGD nothing{.learning_rate = 0};
  const Trained plain = fit(std::make_unique<dist::Default>(), nothing, nn::MeanSquaredError{});
  const Trained penalised = fit(std::make_unique<dist::Default>(), nothing, loss);
  dist::Default strategy;
  nn::Network<Net> net{strategy, 3};
  double squares = 0;
  for (const nn::Parameter& parameter : net.layout())
    if (parameter.kind == "kernel")
      for (std::size_t i = 0; i < parameter.shape.elements(); ++i) {
        const double weight = static_cast<double>(net.parameters().read(strategy.scope())[parameter.offset + i]);
        squares += weight * weight;
      }
  CHECK(penalised.losses[0] == doctest::Approx(plain.losses[0] + 0.0625 * squares).epsilon(1e-5));
  CHECK(penalised.validation[0] == doctest::Approx(plain.validation[0] + 0.0625 * squares).epsilon(1e-5));
  const nn::Regularized summed{nn::Reduced{nn::MeanSquaredError{}, nn::Reduction::Sum{}}, nn::L2{0.0625f}};
  const Trained total = fit(std::make_unique<Mirrored>(2), nothing, summed);
  CHECK(total.losses[0] == doctest::Approx(global_batch * plain.losses[0] + 0.0625 * squares).epsilon(1e-5));
  CHECK(expected.losses.back() !=
        doctest::Approx(fit(std::make_unique<dist::Default>(), descent, nn::MeanSquaredError{}).losses.back()));
}

TEST_CASE("fit ends with the average of the weights if the optimizer keeps one (spec P11)") {
  const nn::With averaging{descent, nn::AverageWeights{.momentum = 0.5f}};
  // The average by its definition, from the weights after each of 16 steps.
  dist::Default strategy;
  nn::Network<Net> net{strategy, 3};
  nn::Optimizer optimizer{strategy, net, descent};
  std::vector<double> average;
  for (int epoch = 0; epoch < 4; ++epoch)
    for (auto&& batch : strategy.distribute_dataset(points())) {
      strategy.run(
          [&](auto& replica, const auto& part) {
            const auto outputs = net.forward(replica, part.x);
            net.backward(replica, nn::mean_squared_error(replica, outputs, part.y, global_batch));
            optimizer.apply_gradients(replica);
          },
          batch);
      const auto weights = net.parameters().read(strategy.scope());
      const double keep = average.empty() ? 0 : 0.5;
      average.resize(weights.size());
      for (std::size_t i = 0; i < weights.size(); ++i)
        average[i] = keep * average[i] + (1 - keep) * static_cast<double>(weights[i]);
    }
  with_strategies([&](auto several) {
    const std::string name = several->describe();
    CAPTURE(name);
    const Trained trained = fit(std::move(several), averaging, nn::MeanSquaredError{});
    double worst = 0;
    for (std::size_t i = 0; i < average.size(); ++i)
      worst = std::fmax(worst, std::fabs(static_cast<double>(trained.weights[i]) - average[i]));
    CHECK(worst < 1e-5);
  });
}

TEST_CASE("gradients are never missing: without any contribution they are zero (spec P09)") {
  with_strategies([&](auto strategy) {
    const std::string name = strategy->describe();
    CAPTURE(name);
    nn::Network<Net> net{*strategy, 3};
    nn::Optimizer optimizer{*strategy, net, descent};
    const auto before = net.parameters().read(strategy->scope());
    const std::vector<float> weights(before.data(), before.data() + before.size());
    const dist::Tensor<float> no_rows{dist::Shape{0, 4}};
    const dist::Tensor<float> no_targets{dist::Shape{0, 1}};
    strategy->run([&](auto& replica) {
      for (float& gradient : net.gradients().component(replica)) gradient = 1;  // from an earlier step
      const auto outputs = net.forward(replica, no_rows);
      net.backward(replica, nn::mean_squared_error(replica, outputs, no_targets, 0));
      optimizer.apply_gradients(replica);
    });
    const auto after = net.parameters().read(strategy->scope());
    bool same = true;
    for (const nn::Parameter& parameter : net.layout())
      for (std::size_t i = parameter.offset; i < parameter.offset + parameter.shape.elements(); ++i)
        same = same && after[i] == weights[i];
    CHECK(same);
    CHECK(optimizer.iterations(strategy->scope()) == 1);
  });
}
