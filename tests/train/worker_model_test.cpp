#include <dist/train/worker_model.hpp>

#include <doctest/doctest.h>

#include <vector>

#include <dist/nn/losses/mean_squared_error.hpp>
#include <dist/nn/metrics/confusion_matrix.hpp>
#include <dist/nn/metrics/sparse_categorical_accuracy.hpp>
#include <dist/nn/network.hpp>
#include <dist/nn/optimizers/sgd.hpp>
#include <dist/strategy/default.hpp>

#include "async/small_network.hpp"

namespace nn = dist::nn;

TEST_CASE("what the metrics of a model have added up goes out and in as one list") {
  dist::Default strategy;
  nn::Network<small::Dense> net{strategy};
  using Steps = nn::detail::ModelSteps<dist::Default, nn::Network<small::Dense>, nn::SGD, nn::MeanSquaredError,
                                       nn::SparseCategoricalAccuracy, nn::ConfusionMatrix>;
  Steps steps{
      strategy, net, nn::SGD{}, nn::MeanSquaredError{}, nn::SparseCategoricalAccuracy{}, nn::ConfusionMatrix{2}};
  const auto scope = strategy.scope();
  CHECK(nn::detail::sums_of(steps, scope) == std::vector<double>(2 + 2 + 4, 0.0));
  const std::vector<double> sums{6, 4, 3, 12, 5, 1, 2, 8};
  nn::detail::set_sums(steps, scope, sums);
  CHECK(nn::detail::sums_of(steps, scope) == sums);
  const nn::Logs& logs = steps.trained().read();
  CHECK(logs["loss"] == 1.5);
  CHECK(logs["accuracy"] == 0.25);
  CHECK(logs["confusion_matrix"] == 13.0 / 16);
}
