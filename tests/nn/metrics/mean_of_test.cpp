#include <dist/nn/metrics/mean_of.hpp>

#include <doctest/doctest.h>
#include <dist/dist.hpp>
#include <dist/nn/losses/regression.hpp>

namespace nn = dist::nn;

TEST_CASE("all examples have the same weight, regardless of their replica (spec P06)") {
  dist::Mirrored<dist::ThreadAllReduce> strategy{2};
  nn::Metric error{strategy, nn::MeanOf{nn::MeanSquaredError{}}};
  CHECK(error.name() == "mean_squared_error");
  dist::Tensor<double> outputs{dist::Shape{3, 1}};
  dist::Tensor<double> targets{dist::Shape{3, 1}};
  outputs[0] = 1, outputs[1] = 2, outputs[2] = 6;  // squares 1, 4, 36
  strategy.run([&](auto& replica) {
    const dist::IndexRange mine = replica.shard(3);
    error.update(replica, outputs.view().rows(mine.begin, mine.size()), targets.view().rows(mine.begin, mine.size()));
  });
  CHECK(error.result(strategy.scope()) == doctest::Approx(41.0 / 3));  // not (2.5 + 36) / 2
}

TEST_CASE("tally of a computed loss is its unscaled sum") {
  const auto tally = nn::MeanOf<nn::MeanSquaredError>::tally(nn::Loss<float>{6.0, 3, 12});
  CHECK(tally.total == 6.0);
  CHECK(tally.count == 3);
}

TEST_CASE("a name may follow the loss") {
  const nn::MeanOf error{nn::MeanSquaredError{}, "mse"};
  CHECK(error.name == "mse");
}

TEST_CASE("sample weights weight examples") {
  dist::Default strategy;
  nn::Metric error{strategy, nn::MeanOf{nn::MeanSquaredError{}}};
  dist::Tensor<double> outputs{dist::Shape{3, 1}}, targets{dist::Shape{3, 1}};
  dist::Tensor<float> weights{dist::Shape{3}};
  outputs[0] = 1, outputs[1] = 2, outputs[2] = 6;
  weights[0] = 0.5F, weights[1] = 2, weights[2] = 0;
  strategy.run([&](auto& replica) { error.update(replica, outputs, targets, weights); });
  CHECK(error.result(strategy.scope()) == (0.5 * 1 + 2 * 4) / 2.5);
}
