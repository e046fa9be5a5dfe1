// Networks on GPUs: the losses, accuracies and weights of the plain loops on the host.
// replicas on GPUs: 1 2 4
#include <dist/nn/cudnn/backend.cuh>

#include <doctest/doctest.h>
#include <conformance/make_strategy.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <dist/comm/cuda/direct_all_reduce.cuh>
#include <dist/comm/memory/shared_memory_all_reduce.hpp>
#include <dist/core/tensor.hpp>
#include <dist/device/cpu.hpp>
#include <dist/nn/layers/dense.hpp>
#include <dist/nn/layers/flatten.hpp>
#include <dist/nn/layers/relu.hpp>
#include <dist/nn/losses/mean_squared_error.hpp>
#include <dist/nn/losses/sparse_categorical_crossentropy.hpp>
#include <dist/nn/metric.hpp>
#include <dist/nn/metrics/mean_of.hpp>
#include <dist/nn/metrics/sparse_categorical_accuracy.hpp>
#include <dist/nn/network.hpp>
#include <dist/nn/optimizer.hpp>
#include <dist/nn/optimizers/adam.hpp>
#include <dist/nn/reference/backend.hpp>
#include <dist/strategy/mirrored.hpp>
#include <dist/strategy/one_device.hpp>

namespace nn = dist::nn;

namespace {

using Net = nn::Sequential<nn::Input<5, 4>, nn::Flatten, nn::Dense<17, nn::Relu>, nn::Dense<9>, nn::ReLU, nn::Dense<3>>;
constexpr std::size_t rows = 6;  // of a replica

/// What a replica's batch is made of, in the memory where it computes.
template <class S, class T>
auto on_device(S& strategy, const dist::Tensor<T>& values) {
  auto buffer = strategy.template buffer<T>(values.shape(), "batch");
  for (std::size_t local = 0; local < strategy.num_local_replicas(); ++local) {
    const auto queue = strategy.scope().queue(local);
    queue.copy(values.elements(), buffer.component(strategy.scope(), local));
    queue.wait();
  }
  return buffer;
}
template <class Buffer>
auto part_of(const Buffer& buffer, const auto& replica) {
  using Place = typename Buffer::Device::Place;
  const dist::TensorView<const typename Buffer::Element, Place> all{buffer.component(replica).data(), buffer.shape()};
  return all.rows(replica.replica_id().index() * rows, rows);
}

struct Trained {
  std::vector<float> losses;
  std::vector<float> weights;
  double accuracy, mean_loss;
};

template <class Backend, class S>
Trained train(S& strategy) {
  const std::size_t batch = rows * strategy.num_replicas_in_sync();
  dist::Tensor<float> images{dist::Shape{batch, 5, 4}};
  dist::Tensor<std::int32_t> classes{dist::Shape{batch}};
  dist::Tensor<float> weighing{dist::Shape{batch}};
  for (std::size_t i = 0; i < images.size(); ++i) images[i] = static_cast<float>((i * 7) % 19) / 19.0F - 0.5F;
  for (std::size_t i = 0; i < batch; ++i) classes[i] = static_cast<std::int32_t>(i % 3);
  for (std::size_t i = 0; i < batch; ++i) weighing[i] = 0.5F + static_cast<float>(i % 2);
  const auto x = on_device(strategy, images);
  const auto labels = on_device(strategy, classes);
  const auto weights = on_device(strategy, weighing);

  nn::Network<Net, Backend> net{strategy, 3};
  nn::Optimizer optimizer{strategy, net, nn::Adam{.learning_rate = 0.02F}};
  nn::Metric accuracy{strategy, nn::SparseCategoricalAccuracy{}};
  nn::Metric mean_loss{strategy, nn::MeanOf{nn::SparseCategoricalCrossentropy{}}};
  Trained trained;
  for (int step = 0; step < 5; ++step)
    trained.losses.push_back(strategy.reduce(dist::sum, strategy.run([&](auto& replica) {
      const auto logits = net.forward(replica, part_of(x, replica));
      const auto loss = nn::sparse_categorical_crossentropy(replica, logits, part_of(labels, replica), batch,
                                                            part_of(weights, replica));
      net.backward(replica, loss);
      optimizer.apply_gradients(replica);
      accuracy.update(replica, logits, part_of(labels, replica));
      mean_loss.update(replica, logits, part_of(labels, replica));
      return loss.value();
    })));
  const auto scope = strategy.scope();
  const auto& parameters = net.parameters().read(scope);
  trained.weights.assign(parameters.data(), parameters.data() + parameters.size());
  trained.accuracy = accuracy.result(scope);
  trained.mean_loss = mean_loss.result(scope);
  return trained;
}

void check_same(const Trained& trained, const Trained& expected) {
  REQUIRE(trained.losses.size() == expected.losses.size());
  for (std::size_t i = 0; i < expected.losses.size(); ++i)
    CHECK(trained.losses[i] == doctest::Approx(expected.losses[i]).epsilon(1e-5));
  REQUIRE(trained.weights.size() == expected.weights.size());
  for (std::size_t i = 0; i < expected.weights.size(); ++i)
    CHECK(trained.weights[i] == doctest::Approx(expected.weights[i]).epsilon(1e-4));
  CHECK(trained.accuracy == expected.accuracy);
  CHECK(trained.mean_loss == doctest::Approx(expected.mean_loss).epsilon(1e-6));
  CHECK(expected.losses.back() < expected.losses.front());
}

}  // namespace

TEST_CASE("a network trains on one GPU as on the host") {
  dist::OneDevice<dist::Cpu> host;
  dist::OneDevice<dist::Cuda> gpu;
  check_same(train<nn::CuDnn>(gpu), train<nn::Reference>(host));
}

TEST_CASE("a network trains on replicas on GPUs as on those of the host") {
  const std::size_t replicas = conformance::replicas_of_environment();
  dist::Mirrored<dist::SharedMemoryAllReduce, dist::Cpu> host{replicas};
  dist::Mirrored<dist::DirectAllReduce, dist::Cuda> gpus{replicas};
  check_same(train<nn::CuDnn>(gpus), train<nn::Reference>(host));
}

TEST_CASE("a loss on a GPU names the row whose label is no class, and a batch without rows has no gradients") {
  dist::OneDevice<dist::Cuda> gpu;
  const auto x = on_device(gpu, dist::Tensor<float>{dist::Shape{rows, 5, 4}});
  const auto labels = on_device(gpu, dist::Tensor<std::int64_t>{dist::Shape{rows}, {0, 1, 2, 0, 3, -1}});
  nn::Network<Net, nn::CuDnn> net{gpu, 3};
  CHECK_THROWS_WITH_AS(gpu.run([&](auto& replica) {
    const auto logits = net.forward(replica, part_of(x, replica));
    static_cast<void>(nn::sparse_categorical_crossentropy(replica, logits, part_of(labels, replica), rows));
  }),
                       doctest::Contains("Label 3 of row 4 is not a class"), dist::InvalidArgument);
  gpu.run([&](auto& replica) {
    const auto logits = net.forward(replica, part_of(x, replica).rows(0, 0));
    const auto loss = nn::sparse_categorical_crossentropy(replica, logits, part_of(labels, replica).rows(0, 0), rows);
    CHECK(loss.value() == 0);
    net.backward(replica, loss);
    dist::Tensor<float> gradients{dist::Shape{net.padded_count}};
    replica.queue().copy(net.gradients().component(replica), gradients.elements());
    replica.queue().wait();
    for (const float gradient : gradients.elements()) CHECK(gradient == 0);
  });
}
