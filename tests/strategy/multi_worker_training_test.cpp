// The guide's multi-worker program on a small network: the losses of one process, with any number of workers and
// replicas.
// ranks: 1 2 4
#include <dist/multi_worker.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <dist/comm/mpi/mpi_all_reduce.hpp>
#include <dist/comm/node/node_all_reduce.hpp>
#include <dist/comm/ring_all_reduce.hpp>
#include <dist/data/batch.hpp>
#include <dist/data/distributed_dataset.hpp>
#include <dist/data/distributed_pipelines.hpp>
#include <dist/data/prefetch.hpp>
#include <dist/data/shard.hpp>
#include <dist/data/shuffle.hpp>
#include <dist/data/take_skip.hpp>
#include <dist/data/tensor_slices.hpp>
#include <dist/nn/layers/conv2d.hpp>
#include <dist/nn/layers/dense.hpp>
#include <dist/nn/layers/views.hpp>
#include <dist/nn/losses/sparse_categorical_crossentropy.hpp>
#include <dist/nn/metric.hpp>
#include <dist/nn/metrics/accuracy.hpp>
#include <dist/nn/network.hpp>
#include <dist/nn/optimizer.hpp>
#include <dist/nn/optimizers/rmsprop.hpp>
#include <dist/nn/sequential.hpp>
#include <dist/strategy/one_device.hpp>

namespace {

namespace nn = dist::nn;
namespace data = dist::data;

using Net =
    nn::Sequential<nn::Input<8, 8, 1>, nn::Conv2D<4, 3, nn::Relu>, nn::Flatten, nn::Dense<16, nn::Relu>, nn::Dense<4>>;

constexpr std::size_t global_batch = 32;
constexpr std::size_t steps = 20;

/// Images of waves; the class is the quarter of the period at the first pixel.
auto waves(std::size_t count) {
  dist::Tensor<float> x{dist::Shape{count, 8, 8, 1}};
  dist::Tensor<std::int32_t> y{dist::Shape{count}};
  for (std::size_t i = 0; i < count; ++i) {
    const double phase = std::fmod(0.77 * static_cast<double>(i), 1.0);
    const double slope = 0.02 * static_cast<double>(1 + i % 7);
    for (std::size_t pixel = 0; pixel < 64; ++pixel)
      x[64 * i + pixel] =
          static_cast<float>(0.5 + 0.5 * std::sin(6.2831853 * (phase + slope * static_cast<double>(pixel))));
    y[i] = static_cast<std::int32_t>(4 * phase);
  }
  return data::tensor_slices(std::move(x), std::move(y));
}

struct Curve {
  std::vector<double> losses;
  double accuracy;
};

/// Returns the losses of all steps of one pass, at most 20.
template <class S, class Batches>
Curve train(S& strategy, Batches batches) {
  nn::Network<Net> net{strategy, 5};
  nn::Optimizer optimizer{strategy, net, nn::RMSprop{.learning_rate = 1e-3f}};
  nn::Metric accuracy{strategy, nn::SparseCategoricalAccuracy{}};
  Curve curve;
  for (auto&& batch : batches) {
    const auto losses = strategy.run(
        [&](auto& replica, const auto& part) {
          const auto logits = net.forward(replica, part.x);
          const auto loss = nn::sparse_categorical_crossentropy(replica, logits, part.y, global_batch);
          net.backward(replica, loss);
          optimizer.apply_gradients(replica);
          accuracy.update(replica, logits, part.y);
          return loss.value();
        },
        batch);
    curve.losses.push_back(static_cast<double>(strategy.reduce(dist::sum, losses)));
    if (curve.losses.size() == steps) break;
  }
  curve.accuracy = accuracy.result(strategy.scope());
  return curve;
}

/// Returns the losses of one process with the global batches of `examples`.
template <class D>
Curve expected_for(const D& examples) {
  dist::OneDevice<dist::Cpu> alone;
  return train(alone, alone.distribute_dataset(examples | data::batch(global_batch)));
}

void check_same(const Curve& curve, const Curve& expected) {
  REQUIRE(curve.losses.size() == expected.losses.size());
  for (std::size_t step = 0; step < expected.losses.size(); ++step) {
    CAPTURE(step);
    CHECK(curve.losses[step] == doctest::Approx(expected.losses[step]).epsilon(1e-5).scale(0));
  }
  CHECK(curve.accuracy == doctest::Approx(expected.accuracy));
}

}  // namespace

TEST_CASE_TEMPLATE("workers that shard one shuffled order train like one process (spec A07, A16, I17, I20)", Ops,
                   dist::RingAllReduce, dist::MpiAllReduce, dist::NodeAllReduce) {
  const auto examples = waves(800) | data::shuffle(800, 3);
  const Curve expected = expected_for(examples | data::repeat());
  REQUIRE(expected.losses.size() == steps);
  CHECK(expected.losses.back() < 0.95 * expected.losses.front());
  for (const std::size_t replicas : {1U, 2U}) {
    CAPTURE(replicas);
    dist::MultiWorker<Ops> strategy{replicas};
    check_same(train(strategy, strategy.distribute_datasets_from_function([&](const dist::InputContext& context) {
                 return examples | data::shard(context.num_input_pipelines(), context.input_pipeline_id()) |
                        data::repeat() | data::batch(context.get_per_replica_batch_size(global_batch)) |
                        data::prefetch(2);
               })),
               expected);
  }
}

TEST_CASE("global batches divided among workers, including the last, train like one process (spec I01, I24)") {
  const auto examples = waves(6 * global_batch + 5);
  const Curve expected = expected_for(examples);
  REQUIRE(expected.losses.size() == 7);
  for (const std::size_t replicas : {1U, 2U}) {
    CAPTURE(replicas);
    dist::MultiWorker<dist::RingAllReduce> strategy{replicas};
    check_same(train(strategy, strategy.distribute_dataset(examples | data::batch(global_batch))), expected);
  }
}

TEST_CASE("workers without examples take part in all steps (spec I24)") {
  const auto examples = waves(5 * global_batch);
  const Curve expected = expected_for(examples);
  dist::MultiWorker<dist::RingAllReduce> strategy;
  const bool has_data = strategy.worker_rank() + 1 == strategy.num_workers();
  check_same(train(strategy, strategy.distribute_datasets_from_function([&](const dist::InputContext&) {
               return examples | data::take(has_data ? 5 * global_batch : 0) | data::batch(global_batch);
             })),
             expected);
}
