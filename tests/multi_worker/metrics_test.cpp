// Metrics of counts, with rows divided among the replicas of several workers (spec P15, P18).
// ranks: 1 2 3
#include <dist/multi_worker.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <memory>

#include <conformance/make_strategy.hpp>
#include <dist/comm/ring_all_reduce.hpp>
#include <dist/nn/metrics/auc.hpp>
#include <dist/nn/metrics/confusion_matrix.hpp>

#include "nn/keras/compare_metric.hpp"

using conformance::Make;
using Workers = dist::MultiWorker<dist::RingAllReduce>;

TEST_CASE_TEMPLATE("workers count together, and each has the result", Maker, Make<Workers, 1>, Make<Workers, 2>) {
  namespace nn = dist::nn;
  const auto owner = Maker::make();
  Workers& strategy = *owner;
  const keras_metrics::Batch<float, int> labelled{keras_metrics::sparse_categorical_accuracy};
  const keras_metrics::Batch<float, float> answered{keras_metrics::auc};
  nn::Metric matrix{strategy, nn::ConfusionMatrix{.classes = 3}};
  nn::Metric area{strategy, nn::Auc{}};
  strategy.run([&](auto& replica) {
    const dist::IndexRange mine = replica.shard(8);
    matrix.update(replica, labelled.outputs.view().rows(mine.begin, mine.size()),
                  labelled.targets.view().rows(mine.begin, mine.size()));
    area.update(replica, answered.outputs.view().rows(mine.begin, mine.size()),
                answered.targets.view().rows(mine.begin, mine.size()));
    CHECK(area.result(replica) == doctest::Approx(keras_metrics::auc.result).epsilon(1e-12));
  });
  const dist::Tensor<double> counts = matrix.counts(strategy.scope());
  for (std::size_t i = 0; i < 9; ++i) CHECK(counts[i] == keras_metrics::confusion_matrix[i]);
  CHECK(matrix.result(strategy.scope()) == keras_metrics::sparse_categorical_accuracy.result);
  CHECK(area.result(strategy.scope()) == doctest::Approx(keras_metrics::auc.result).epsilon(1e-12));
  area.reset(strategy.scope());
  CHECK(area.result(strategy.scope()) == 0);
}
