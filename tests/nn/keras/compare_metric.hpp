// Compares a metric with Keras, under strategies whose replicas share the rows.
#pragma once

#include <concepts>
#include <cstddef>
#include <memory>
#include <utility>

#include <dist/core/index_range.hpp>
#include <dist/core/shape.hpp>
#include <dist/core/tensor.hpp>
#include <dist/nn/metric.hpp>
#include <dist/strategy/central_storage.hpp>
#include <dist/strategy/default.hpp>
#include <dist/strategy/mirrored.hpp>

#include <doctest/doctest.h>
#include <support/saved.hpp>

#include "nn/keras/metrics.hpp"

namespace keras_metrics {

/// The outputs of a case, its targets as labels or rows, and its weights.
template <class T, class Target>
struct Batch {
  dist::Tensor<T> outputs{dist::Shape{8, 3}};
  dist::Tensor<Target> targets{std::integral<Target> ? dist::Shape{8} : dist::Shape{8, 3}};
  dist::Tensor<T> sample_weights{dist::Shape{8}};

  explicit Batch(const Case& of) {
    for (std::size_t i = 0; i < outputs.size(); ++i) outputs[i] = static_cast<T>(of.outputs[i]);
    for (std::size_t i = 0; i < targets.size(); ++i) targets[i] = static_cast<Target>(of.targets[i]);
    for (std::size_t i = 0; i < 8; ++i) sample_weights[i] = static_cast<T>(weights[i]);
  }
};

template <class T, class Target, class S, class M>
void compare_under(std::unique_ptr<S> owner, const M& measure, const Case& keras) {
  S& strategy = *owner;
  CAPTURE(strategy.describe());
  const Batch<T, Target> batch{keras};
  dist::nn::Metric metric{strategy, measure};
  CHECK(metric.result(strategy.scope()) == 0);
  const auto update = [&](bool is_weighted) {
    strategy.run([&](auto& replica) {
      const dist::IndexRange mine = replica.shard(8);
      for (const dist::IndexRange part : {dist::IndexRange{mine.begin, mine.begin + mine.size() / 2},
                                          dist::IndexRange{mine.begin + mine.size() / 2, mine.end}}) {
        const auto outputs = batch.outputs.view().rows(part.begin, part.size());
        const auto targets = batch.targets.view().rows(part.begin, part.size());
        if (is_weighted)
          metric.update(replica, outputs, targets, batch.sample_weights.view().rows(part.begin, part.size()));
        else
          metric.update(replica, outputs, targets);
      }
    });
  };
  const auto is = [](double expected) { return doctest::Approx(expected).epsilon(1e-12); };
  update(false);
  CHECK(metric.result(strategy.scope()) == is(keras.result));
  CHECK(metric.result_here(strategy.scope()) == is(keras.result));
  strategy.run([&](auto& replica) { CHECK(metric.result(replica) == is(keras.result)); });
  {  // a restored metric continues under another strategy (spec P15)
    const support::Saved saved{strategy, metric};
    dist::Mirrored<dist::ThreadAllReduce> other{3};
    dist::nn::Metric restored{other, measure};
    saved.restore(other, restored);
    CHECK(restored.result(other.scope()) == is(keras.result));
  }
  metric.reset(strategy.scope());  // spec P18
  CHECK(metric.result(strategy.scope()) == 0);
  update(true);
  CHECK(metric.result(strategy.scope()) == is(keras.weighted_result));
  metric.reset(strategy.scope());
  metric.update(strategy.scope(), batch.outputs, batch.targets);  // spec P16
  metric.update(strategy.scope(), batch.outputs, batch.targets);
  CHECK(metric.result(strategy.scope()) == is(keras.result));
}

/// Fails unless the results equal Keras', with and without weights, for outputs in double and in float.
template <class Target = double, class M>
void compare(const M& measure, const Case& keras) {
  compare_under<double, Target>(std::make_unique<dist::Default>(), measure, keras);
  for (const std::size_t replicas : {std::size_t{1}, std::size_t{2}, std::size_t{3}})
    compare_under<float, Target>(std::make_unique<dist::Mirrored<dist::ThreadAllReduce>>(replicas), measure, keras);
  compare_under<double, Target>(std::make_unique<dist::CentralStorage<dist::Cpu>>(2), measure, keras);
}

}  // namespace keras_metrics
