#include <dist/async/server_metric.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <vector>

#include <dist/async/replica_strategy.hpp>
#include <dist/checkpoint/checkpoint.hpp>
#include <dist/nn/metrics/confusion_matrix.hpp>
#include <dist/nn/metrics/mean_value.hpp>
#include <dist/nn/metrics/sparse_categorical_accuracy.hpp>
#include <dist/strategy/default.hpp>

#include "async/served_job.hpp"
#include "support/temporary_folder.hpp"

namespace nn = dist::nn;
using dist::Local;
using dist::Shape;
using dist::Tensor;
using dist_test::ServedJob;

namespace {

/// What a worker's function measures: of two rows, the first is of the class that is said, the second is of class 1.
struct Measure {
  template <class Accuracy, class Matrix, class Mean>
  std::string operator()(dist::WorkerContext& worker, Accuracy& accuracy, Matrix& matrix, Mean& mean,
                         std::int32_t label) const {
    Tensor<float> outputs{Shape{2, 2}};
    outputs[0] = outputs[3] = 1;
    Tensor<std::int32_t> labels{Shape{2}};
    labels[0] = label;
    labels[1] = 1;
    dist::ReplicaStrategy<Local> strategy;
    return strategy.step(worker, [&](auto& replica) {
      accuracy.update(replica, outputs, labels);
      matrix.update(replica, outputs, labels);
      mean.update(replica, 10.0 * label, 2.0);
      return std::string{accuracy.name()};
    });
  }
};

}  // namespace

TEST_CASE("workers add to metrics on the servers, and the coordinator reads them (spec J13, P18)") {
  ServedJob<Local> job(2, 3, {.partitioner = dist::FixedShards{2}});
  const auto scope = job.scope();
  nn::ServerMetric accuracy{job.strategy(), nn::SparseCategoricalAccuracy{.name = "a long name of an accuracy"}};
  nn::ServerMetric matrix{job.strategy(), nn::ConfusionMatrix{2}};
  nn::ServerMetric mean{job.strategy(), nn::MeanValue{}};
  CHECK(accuracy.result(scope) == 0);
  std::vector<dist::RemoteValue<std::string>> names;
  for (std::int32_t i = 0; i < 20; ++i)
    names.push_back(job.coordinator().schedule(Measure{}, accuracy, matrix, mean, i % 4 == 0 ? 0 : 1));
  job.coordinator().join();
  CHECK(names[7].fetch() == "a long name of an accuracy");
  CHECK(accuracy.result(scope) == 25.0 / 40);
  CHECK(mean.result(scope) == 7.5);
  const Tensor<double> counts = matrix.counts(scope);
  CHECK(std::vector<double>(counts.elements().begin(), counts.elements().end()) == std::vector<double>{5, 0, 15, 20});
  CHECK(matrix.result(scope) == 25.0 / 40);
  accuracy.reset(scope);
  CHECK(accuracy.result(scope) == 0);
}

TEST_CASE("a checkpoint of it is one of nn::Metric, and the reverse") {
  const support::TemporaryFolder folder;
  dist::Default alone;
  nn::Metric mean{alone, nn::MeanValue{}};
  mean.add(alone.scope(), {.total = 6, .count = 4});
  dist::Checkpoint{alone}.add("mean", mean).save(folder.path("plain"));
  {
    ServedJob<Local> job(1, 1);
    nn::ServerMetric on_servers{job.strategy(), nn::MeanValue{}};
    dist::Checkpoint{job.strategy()}.add("mean", on_servers).restore(folder.path("plain"));
    CHECK(on_servers.result(job.scope()) == 1.5);
    dist::Checkpoint{job.strategy()}.add("mean", on_servers).save(folder.path("servers"));
  }
  mean.reset(alone.scope());
  dist::Checkpoint{alone}.add("mean", mean).restore(folder.path("servers"));
  CHECK(mean.result(alone.scope()) == 1.5);
}
