// Captures a whole training step, with its loss and metrics, as a graph: nothing in it waits for a GPU.
// replicas on GPUs: 1 2 3 4
#include <dist/comm/cuda/policies.cuh>
#include <dist/device/cuda/device.cuh>
#include <dist/nn/cuda/backend.cuh>
#include <dist/strategy/step_graph.hpp>

#include <doctest/doctest.h>
#include <conformance/make_strategy.hpp>

#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <dist/core/error.hpp>
#include <dist/core/tensor.hpp>
#include <dist/nn/layers/conv2d.hpp>
#include <dist/nn/layers/dense.hpp>
#include <dist/nn/layers/views.hpp>
#include <dist/nn/losses/sparse_categorical_crossentropy.hpp>
#include <dist/nn/metric.hpp>
#include <dist/nn/metrics/accuracy.hpp>
#include <dist/nn/metrics/mean_of.hpp>
#include <dist/nn/network.hpp>
#include <dist/nn/optimizer.hpp>
#include <dist/nn/optimizers/adam.hpp>
#include <dist/nn/regularizer.hpp>
#include <dist/strategy/mirrored.hpp>
#include <dist/variable/policies.hpp>
#include <support/gpu_counts.hpp>

namespace nn = dist::nn;
using Mirrored = dist::Mirrored<dist::DirectAllReduce, dist::Cuda>;

namespace {

using Net = nn::Sequential<nn::Input<5, 4, 1>, nn::Conv2D<4, 2, nn::Relu>, nn::Flatten, nn::Dense<3>>;
constexpr std::size_t rows = 6;  // per replica
constexpr std::size_t steps = 5;

struct Data {
  explicit Data(Mirrored& strategy)
      : images(strategy.buffer<float>({rows, 5, 4, 1}, "images")),
        labels(strategy.buffer<std::int32_t>({rows}, "labels")) {
    for (std::size_t local = 0; local < strategy.num_local_replicas(); ++local) {
      dist::Tensor<float> x{{rows, 5, 4, 1}};
      dist::Tensor<std::int32_t> y{{rows}};
      for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>((i * 7 + local * 3) % 19) / 19.0F - 0.5F;
      for (std::size_t i = 0; i < rows; ++i) y[i] = static_cast<std::int32_t>((i + local) % 3);
      const auto queue = strategy.scope().queue(local);
      queue.copy(x.elements(), images.component(strategy.scope(), local));
      queue.copy(y.elements(), labels.component(strategy.scope(), local));
      queue.wait();
    }
  }
  template <class Buffer>
  static auto of(const Buffer& buffer, const auto& replica) {
    return dist::TensorView<const typename Buffer::Element, dist::cuda::DeviceMemory>{buffer.component(replica).data(),
                                                                                      buffer.shape()};
  }
  dist::ReplicaBuffer<float, dist::Cuda> images;
  dist::ReplicaBuffer<std::int32_t, dist::Cuda> labels;
};

struct Trained {
  std::vector<float> losses, weights;
  double accuracy, mean_loss;
  bool operator==(const Trained&) const = default;
};

/// Trains by `run(step)`; reads the results of the steps after the last one.
template <class Run>
Trained train(Mirrored& strategy, Run&& run) {
  const Data data{strategy};
  const std::size_t batch = rows * strategy.num_replicas_in_sync();
  nn::Network<Net, nn::Cuda> net{strategy, 3};
  nn::Optimizer optimizer{strategy, net, nn::Adam{.learning_rate = 0.02F}};
  nn::Metric accuracy{strategy, nn::SparseCategoricalAccuracy{}};
  nn::Metric mean_loss{strategy, nn::MeanOf{nn::SparseCategoricalCrossentropy{}}};
  const auto step = [&](auto& replica) {
    const auto logits = net.forward(replica, Data::of(data.images, replica));
    const auto loss = nn::sparse_categorical_crossentropy(replica, logits, Data::of(data.labels, replica), batch);
    net.backward(replica, loss);
    optimizer.apply_gradients(replica);
    accuracy.update(replica, logits, Data::of(data.labels, replica));
    mean_loss.update(replica, logits, Data::of(data.labels, replica));
    return loss;
  };
  std::vector<decltype(strategy.run(step))> losses{strategy.run(step)};  // allocates the memory of a step
  while (losses.size() < steps) losses.push_back(run(step));
  Trained trained{{}, {}, accuracy.result(strategy.scope()), mean_loss.result(strategy.scope())};
  for (const auto& of_step : losses) trained.losses.push_back(strategy.reduce(dist::sum, of_step));
  const auto& parameters = net.parameters().read(strategy.scope());
  trained.weights.assign(parameters.data(), parameters.data() + parameters.size());
  return trained;
}

}  // namespace

TEST_CASE("steps with a loss and metrics give the same bits with and without graphs") {
  Mirrored strategy{conformance::replicas_of_environment()};
  const Trained eager = train(strategy, [&](const auto& step) { return strategy.run(step); });
  dist::StepGraph graph{strategy};
  const std::size_t before = support::gpu_counts().graph_launches;
  CHECK(train(strategy, [&](const auto& step) { return graph.run(step); }) == eager);
  if (support::gpus_are_counted) CHECK(support::gpu_counts().graph_launches == before + steps - 1);
  CHECK(graph.instantiations() == 1);
  CHECK(eager.losses.back() < eager.losses.front());
}

TEST_CASE("regularised steps give the same bits and penalties with and without graphs") {
  Mirrored strategy{conformance::replicas_of_environment()};
  const auto train_regularized = [&](auto&& run) {
    const Data data{strategy};
    const std::size_t batch = rows * strategy.num_replicas_in_sync();
    nn::Network<Net, nn::Cuda> net{strategy, 3};
    nn::Optimizer optimizer{strategy, net, nn::Adam{.learning_rate = 0.02F}};
    const auto step = [&](auto& replica) {
      const nn::L2 l2{0.1F};
      const auto penalty = nn::start_total_regularization(replica, net, l2);
      const auto logits = net.forward(replica, Data::of(data.images, replica));
      net.backward(replica,
                   nn::sparse_categorical_crossentropy(replica, logits, Data::of(data.labels, replica), batch));
      nn::add_regularization_gradients(replica, net, l2);
      optimizer.apply_gradients(replica);
      return penalty;
    };
    std::vector<decltype(strategy.run(step))> of_steps{strategy.run(step)};
    while (of_steps.size() < steps) of_steps.push_back(run(step));
    std::vector<double> penalties;
    for (const auto& of_step : of_steps)
      for (const auto& penalty : strategy.local_results(of_step)) penalties.push_back(penalty.value());
    return penalties;
  };
  const std::vector<double> eager = train_regularized([&](const auto& step) { return strategy.run(step); });
  dist::StepGraph graph{strategy};
  CHECK(train_regularized([&](const auto& step) { return graph.run(step); }) == eager);
  CHECK(eager.size() == steps * strategy.num_replicas_in_sync());
  CHECK(eager.back() < eager.front());  // Adam follows the L2 penalty
}

TEST_CASE("many steps whose metrics are not read are counted") {
  Mirrored strategy{conformance::replicas_of_environment()};
  const Data data{strategy};
  dist::StepGraph graph{strategy};
  nn::Metric accuracy{strategy, nn::SparseCategoricalAccuracy{}};
  const auto scores = strategy.buffer<float>({rows, 3}, "scores");  // equal, so the first one is the prediction
  const auto step = [&](auto& replica) {
    accuracy.update(replica, Data::of(scores, replica), Data::of(data.labels, replica));
  };
  strategy.run(step);
  for (std::size_t number = 1; number < 300; ++number) graph.run(step);
  CHECK(accuracy.result(strategy.scope()) == doctest::Approx(1.0 / 3));
  accuracy.reset(strategy.scope());
  graph.run(step);
  accuracy.reset(strategy.scope());
  CHECK(accuracy.result(strategy.scope()) == 0);
}

TEST_CASE("an invalid label is reported once when a metric is read, and no other batch is lost") {
  Mirrored strategy{conformance::replicas_of_environment()};
  const Data data{strategy};
  const auto no_labels = strategy.buffer<std::int32_t>({rows}, "no labels");
  const auto scores = strategy.buffer<float>({rows, 3}, "scores");  // all equal
  nn::Metric mean_loss{strategy, nn::MeanOf{nn::SparseCategoricalCrossentropy{}}};
  std::atomic<int> refusals{0};
  for (int round = 0; round < 2; ++round) {
    const auto measure_all = [&](auto& replica) {
      const auto mine = no_labels.component(replica);
      replica.queue().fill(mine, 9);
      for (const auto* labels : {&data.labels, &no_labels, &data.labels}) try {
          mean_loss.update(replica, Data::of(scores, replica), Data::of(*labels, replica));
        } catch (const dist::InvalidArgument&) {  // the label is reported early
          ++refusals;
        }
    };
    strategy.run(measure_all);
  }
  const auto first_result = strategy.run([&](auto& replica) {
    for (int times = 0; times < 3; ++times) try {
        return mean_loss.result(replica);
      } catch (const dist::InvalidArgument&) {
        ++refusals;
      }
    return -1.0;
  });
  for (const double mean : strategy.local_results(first_result)) CHECK(mean == doctest::Approx(std::log(3.0)));
  CHECK(refusals == 2 * static_cast<int>(strategy.num_local_replicas()));
}

TEST_CASE("values added to an OnRead variable stay on the GPU until it is read") {
  Mirrored strategy{conformance::replicas_of_environment()};
  auto total = strategy.variable<float, dist::OnRead, dist::Sum>({3}, 0.0F, "total");
  dist::StepGraph graph{strategy};
  const auto step = [&](auto& replica) { total.assign_add(replica, 0.5F); };
  strategy.run(step);
  for (int number = 1; number < 4; ++number) graph.run(step);  // a wait would throw
  const auto sum = total.read(strategy.scope());
  CHECK(sum[2] == 2.0F * static_cast<float>(strategy.num_replicas_in_sync()));
}
