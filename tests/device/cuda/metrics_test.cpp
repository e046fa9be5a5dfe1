// Metrics of outputs on GPUs, some with several replicas: the results equal the host's, with and without weights.
// replicas on GPUs: 1 2 3 4
#include <dist/device/cuda/device.cuh>

#include <doctest/doctest.h>
#include <conformance/make_strategy.hpp>

#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <dist/comm/cuda/policies.cuh>
#include <dist/comm/memory/thread_all_reduce.hpp>
#include <dist/core/tensor.hpp>
#include <dist/device/cpu.hpp>
#include <dist/nn/losses/regression.hpp>
#include <dist/nn/losses/sparse_categorical_crossentropy.hpp>
#include <dist/nn/metric.hpp>
#include <dist/nn/metrics/accuracy.hpp>
#include <dist/nn/metrics/auc.hpp>
#include <dist/nn/metrics/confusion_matrix.hpp>
#include <dist/nn/metrics/mean_of.hpp>
#include <dist/nn/metrics/precision_recall.hpp>
#include <dist/strategy/central_storage.hpp>
#include <dist/strategy/mirrored.hpp>

namespace nn = dist::nn;

namespace {

constexpr std::size_t rows = 9, classes = 5;

/// Three steps with batches that differ between replicas; every second one is weighted.
template <class Target, class S, class M>
std::vector<double> measured(S& strategy, const M& measure) {
  const auto make = [&]<class T>(dist::Shape shape, T, auto value_of, const char* name) {
    auto buffer = strategy.template buffer<T>(shape, name);
    strategy.run([&](auto& replica) {
      dist::Tensor<T> given{shape};
      for (std::size_t i = 0; i < given.size(); ++i)
        given[i] = static_cast<T>(value_of(i + 7 * replica.replica_id().index()));
      replica.queue().copy(std::as_const(given).elements(), buffer.component(replica));
      replica.queue().wait();
    });
    return buffer;
  };
  const auto outputs = make(
      dist::Shape{rows, classes}, 0.0F, [](std::size_t i) { return static_cast<double>(i * i * 5 % 37) / 40; },
      "outputs");
  const auto targets = make(
      std::integral<Target> ? dist::Shape{rows} : dist::Shape{rows, classes}, Target{},
      [](std::size_t i) { return static_cast<double>(std::integral<Target> ? i % classes : i * 5 % 3 % 2); },
      "targets");
  const auto weights = make(
      dist::Shape{rows}, 0.0F, [](std::size_t i) { return 0.25 * static_cast<double>(i % 4); }, "weights");
  nn::Metric metric{strategy, measure};
  std::vector<double> results;
  for (int step = 0; step < 3; ++step) {
    strategy.run([&](auto& replica) {
      const auto view = [&](const auto& buffer) {
        const auto elements = buffer.component(replica);
        return dist::TensorView<std::remove_pointer_t<decltype(elements.data())>, typename S::Device::Space>{
            elements.data(), buffer.shape()};
      };
      if (step % 2 == 0)
        metric.update(replica, view(outputs), view(targets));
      else
        metric.update(replica, view(outputs), view(targets), view(weights));
    });
    results.push_back(metric.result(strategy.scope()));
    results.push_back(metric.result_here(strategy.scope()));
    const auto of_replicas = strategy.run([&](auto& replica) { return metric.result(replica); });
    results.push_back(strategy.reduce(dist::max, of_replicas));
  }
  metric.reset(strategy.scope());
  results.push_back(metric.result(strategy.scope()));
  return results;
}

template <class Target = float, class M>
void compare(const M& measure) {
  CAPTURE(measure.name);
  const std::size_t replicas = conformance::replicas_of_environment();
  dist::Mirrored<dist::ThreadAllReduce, dist::Cpu> host{replicas};
  dist::Mirrored<dist::DirectAllReduce, dist::Cuda> gpus{replicas};
  dist::CentralStorage<dist::Cpu, dist::Cuda> central{replicas};
  const std::vector<double> expected = measured<Target>(host, measure);
  CHECK(expected[0] > 0);
  const auto check = [&](const std::vector<double>& found) {
    REQUIRE(found.size() == expected.size());
    for (std::size_t i = 0; i < found.size(); ++i) CHECK(found[i] == doctest::Approx(expected[i]).epsilon(1e-6));
  };
  check(measured<Target>(gpus, measure));
  check(measured<Target>(central, measure));
}

}  // namespace

TEST_CASE("metrics on GPUs equal the host's (spec P15, P18)") {
  compare<std::int32_t>(nn::SparseCategoricalAccuracy{});
  compare(nn::CategoricalAccuracy{});
  compare(nn::BinaryAccuracy{});
  compare<std::uint8_t>(nn::SparseTopKCategoricalAccuracy{.k = 2});
  compare(nn::TopKCategoricalAccuracy{.k = 2});
  compare<std::int32_t>(nn::ConfusionMatrix{.classes = classes});
  compare(nn::Precision{});
  compare(nn::Recall{});
  compare(nn::F1{});
  compare(nn::Auc{.thresholds = 20});
  compare(nn::MeanOf{nn::MeanSquaredError{}});
  compare<std::int32_t>(nn::MeanOf{nn::SparseCategoricalCrossentropy{}});
}
