#include <dist/nn/moving_average.hpp>

#include <cmath>
#include <memory>

#include <doctest/doctest.h>
#include <dist/dist.hpp>
#include <dist/strategy/central_storage.hpp>
#include <support/saved.hpp>

#include "support/allocations.hpp"

namespace nn = dist::nn;
using Mirrored = dist::Mirrored<dist::ThreadAllReduce>;

namespace {

const dist::Shape shape{100};  // larger than an announcement

dist::Tensor<double> filled(double value) {
  dist::Tensor<double> tensor{shape};
  for (std::size_t i = 0; i < tensor.size(); ++i) tensor[i] = value + static_cast<double>(i);
  return tensor;
}

/// Replica r has value r + step, with mean (R - 1) / 2 + step over R replicas.
template <class S>
void compare(std::unique_ptr<S> owner) {
  S& strategy = *owner;
  CAPTURE(strategy.describe());
  auto variable = strategy.template variable<double>(shape, 7.0);
  nn::ZeroDebiasedAverage<S, double> debiased{strategy, shape, 0.75f};
  CHECK(debiased.read(strategy.scope())[5] == 0.0);
  const double replicas = static_cast<double>(strategy.num_replicas_in_sync());
  double expected = 7;
  double biased = 0;
  for (int step = 0; step < 4; ++step) {
    strategy.run([&](auto& replica) {
      const auto value = filled(static_cast<double>(replica.replica_id().index()) + step);
      nn::assign_moving_average(replica, variable, value, 0.75f);
      debiased.update(replica, value);
      CHECK(debiased.updates(replica) == step + 1);
    });
    const double mean = (replicas - 1) / 2 + step + 5;  // of element 5
    expected = 0.75 * expected + 0.25 * mean;
    biased = 0.75 * biased + 0.25 * mean;
    for (std::size_t local = 0; local < strategy.num_local_replicas(); ++local)
      CHECK(variable.component(strategy.scope(), local)[5] == doctest::Approx(expected).epsilon(1e-12));
    CHECK(debiased.read(strategy.scope())[5] ==
          doctest::Approx(biased / (1 - std::pow(0.75, step + 1))).epsilon(1e-12));
    strategy.run([&](auto& replica) {
      CHECK(debiased.read(replica)[5] == doctest::Approx(biased / (1 - std::pow(0.75, step + 1))).epsilon(1e-12));
    });
  }
  nn::assign_moving_average(strategy.scope(), variable, filled(1), 0.75f);
  debiased.update(strategy.scope(), filled(1));
  expected = 0.75 * expected + 0.25 * 6;
  biased = 0.75 * biased + 0.25 * 6;
  for (std::size_t local = 0; local < strategy.num_local_replicas(); ++local)
    CHECK(variable.component(strategy.scope(), local)[5] == doctest::Approx(expected).epsilon(1e-12));
  CHECK(debiased.updates(strategy.scope()) == 5);
  CHECK(debiased.read(strategy.scope())[5] == doctest::Approx(biased / (1 - std::pow(0.75, 5))).epsilon(1e-12));
}

}  // namespace

TEST_CASE("the mean over the replicas is applied once, with and without bias correction (spec P23)") {
  compare(std::make_unique<dist::Default>());
  compare(std::make_unique<dist::OneDevice<dist::Cpu>>());
  for (const std::size_t replicas : {1U, 2U, 3U, 4U, 8U}) {
    compare(std::make_unique<Mirrored>(replicas));
    compare(std::make_unique<dist::CentralStorage<dist::Cpu>>(replicas));
  }
}

TEST_CASE("outside replica functions, the value of `read` moves, and every copy is assigned (spec P23)") {
  Mirrored strategy{2};
  auto variable = strategy.variable<double>({});
  strategy.run([&](auto& replica) { variable.assign(replica, 10.0 * static_cast<double>(replica.local_index())); });
  dist::Tensor<double> value{dist::Shape{}};
  value[0] = 4;
  nn::assign_moving_average(strategy.scope(), variable, value, 0.5f);
  CHECK(variable.component(strategy.scope(), 0)[0] == 2);  // half way from copy 0, which is 0, to 4
  CHECK(variable.component(strategy.scope(), 1)[0] == 2);
}

TEST_CASE("in strategy.update, each copy moves towards its own value (spec D04, P23)") {
  Mirrored strategy{2};
  auto variable = strategy.variable<double, dist::OnRead, dist::Mean>({2});
  strategy.run([&](auto& replica) {
    for (double& element : variable.component(replica)) element = 10.0 * static_cast<double>(replica.local_index());
  });
  const auto values = strategy.run([](auto& replica) {
    dist::Tensor<double> value{{2}};
    value[0] = 4.0 + 4.0 * static_cast<double>(replica.local_index());
    value[1] = 2;
    return value;
  });
  strategy.update(
      variable,
      [&](const auto& context, const dist::Tensor<double>& value) {
        nn::assign_moving_average(context, variable, value, 0.75f);
      },
      values);
  CHECK(variable.component(strategy.scope(), 0)[0] == 1);    // 0.75 * 0 + 0.25 * 4
  CHECK(variable.component(strategy.scope(), 1)[0] == 9.5);  // 0.75 * 10 + 0.25 * 8
  CHECK(variable.component(strategy.scope(), 1)[1] == 8);
  dist::CentralStorage<dist::Cpu> central{2};
  auto one = central.variable<double>({2}, 8.0);
  central.update(one, [&](const auto& context) {
    dist::Tensor<double> value{{2}};
    nn::assign_moving_average(context, one, value, 0.5f);
  });
  CHECK(one.read(central.scope())[1] == 4);
}

TEST_CASE("the first value of a zero-debiased average is the value") {
  dist::Default strategy;
  nn::ZeroDebiasedAverage<dist::Default, double> average{strategy, shape, 0.99f};
  average.update(strategy.scope(), filled(3));
  CHECK(average.read(strategy.scope())[0] == doctest::Approx(3.0).epsilon(1e-6));
}

TEST_CASE("values of another shape and decays out of range are rejected") {
  dist::Default strategy;
  auto variable = strategy.variable<double>({3}, 0.0, "mean");
  const auto value = filled(0);
  CHECK_THROWS_WITH_AS(nn::assign_moving_average(strategy.scope(), variable, value, 0.5f),
                       "A moving average does not fit variable 'mean' (the value has shape [100], the variable [3]). "
                       "Give a value of the variable's shape.",
                       dist::ShapeMismatch);
  auto other = strategy.variable<double>(shape);
  CHECK_THROWS_AS(nn::assign_moving_average(strategy.scope(), other, value, 1.0f), dist::InvalidArgument);
  CHECK_THROWS_AS((nn::ZeroDebiasedAverage<dist::Default>{strategy, shape, -0.5f}), dist::InvalidArgument);
}

TEST_CASE("copies that differ move from their own value towards the mean (spec P23)") {
  Mirrored strategy{3};
  const dist::Shape many{2500};  // several blocks
  const auto check = [&](auto variable) {
    const auto wrong = strategy.run([&](auto& replica) {
      const auto rank = static_cast<float>(replica.local_index());
      const auto own = variable.component(replica);
      dist::Tensor<float> value{many};
      for (std::size_t i = 0; i < own.size(); ++i) {
        own[i] = 8 * rank;
        value[i] = 4 * rank + static_cast<float>(i);
      }
      nn::assign_moving_average(replica, variable, value, 0.75f);
      std::size_t mistakes = 0;
      for (std::size_t i = 0; i < own.size(); ++i)
        mistakes += own[i] != 0.75f * (8 * rank) + 0.25f * (4 + static_cast<float>(i));
      return mistakes;
    });
    for (const std::size_t mistakes : wrong) CHECK(mistakes == 0);
  };
  check(strategy.variable<float, dist::OnRead, dist::Mean>(many));
  check(strategy.variable<float>(many));
}

TEST_CASE("a moving average does not allocate in a step") {
  const auto check = [](auto& strategy) {
    const dist::Shape many{3000};
    nn::ZeroDebiasedAverage debiased{strategy, many, 0.75f};
    auto own = strategy.template variable<float, dist::OnRead, dist::Mean>(many);
    const dist::Tensor<float> value{many};
    const auto step = [&](auto& replica) {
      debiased.update(replica, value);
      nn::assign_moving_average(replica, own, value, 0.5f);
    };
    strategy.run(step);
    const std::size_t before = allocations;
    for (int i = 0; i < 3; ++i) strategy.run(step);
    CHECK(allocations == before);
  };
  dist::Default plain;
  check(plain);
  Mirrored mirrored{3};
  check(mirrored);
  dist::CentralStorage<dist::Cpu> central{3};
  check(central);
}

TEST_CASE("a zero-debiased average is tracked") {
  Mirrored three{3};
  nn::ZeroDebiasedAverage average{three, dist::Shape{2}, 0.5f};
  average.update(three.scope(), dist::Tensor<float>{{2}, {4, 6}});
  const support::Saved saved{three, average};
  CHECK(saved.keys() == std::vector<std::string>{"biased", "updates"});
  dist::CentralStorage<dist::Cpu> two{2};
  nn::ZeroDebiasedAverage restored{two, dist::Shape{2}, 0.5f};
  saved.restore(two, restored);
  CHECK(restored.read(two.scope()) == dist::Tensor<float>{{2}, {4, 6}});
  CHECK(restored.updates(two.scope()) == 1);
}
