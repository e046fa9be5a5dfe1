// Networks on GPUs, compared with losses, accuracies and weights of the plain loops on the host.
// replicas on GPUs: 1 2 3 4
#include <dist/nn/cuda/backend.cuh>

#include <doctest/doctest.h>
#include <conformance/make_strategy.hpp>

#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <dist/comm/cuda/policies.cuh>
#include <dist/comm/memory/thread_all_reduce.hpp>
#include <dist/core/float16.hpp>
#include <dist/core/tensor.hpp>
#include <dist/device/cpu.hpp>
#include <dist/nn/activations/smooth.hpp>
#include <dist/nn/cuda/embedding.cuh>
#include <dist/nn/layers/activate.hpp>
#include <dist/nn/layers/batch_normalization.hpp>
#include <dist/nn/layers/bias.hpp>
#include <dist/nn/layers/concatenate.hpp>
#include <dist/nn/layers/conv2d.hpp>
#include <dist/nn/layers/dense.hpp>
#include <dist/nn/layers/depthwise_conv2d.hpp>
#include <dist/nn/layers/dropout.hpp>
#include <dist/nn/layers/embedding.hpp>
#include <dist/nn/layers/group_normalization.hpp>
#include <dist/nn/layers/learned_positions.hpp>
#include <dist/nn/layers/multi_head_attention.hpp>
#include <dist/nn/layers/named.hpp>
#include <dist/nn/layers/pool2d.hpp>
#include <dist/nn/layers/rms_normalization.hpp>
#include <dist/nn/layers/softmax.hpp>
#include <dist/nn/layers/unembed.hpp>
#include <dist/nn/layers/views.hpp>
#include <dist/nn/loss_scale.hpp>
#include <dist/nn/losses/average_loss.hpp>
#include <dist/nn/losses/reduced.hpp>
#include <dist/nn/losses/regression.hpp>
#include <dist/nn/losses/sparse_categorical_crossentropy.hpp>
#include <dist/nn/metric.hpp>
#include <dist/nn/metrics/accuracy.hpp>
#include <dist/nn/metrics/mean_of.hpp>
#include <dist/nn/mixed_precision.hpp>
#include <dist/nn/network.hpp>
#include <dist/nn/optimizer.hpp>
#include <dist/nn/optimizers/adam.hpp>
#include <dist/nn/reference/backend.hpp>
#include <dist/nn/regularizer.hpp>
#include <dist/strategy/mirrored.hpp>
#include <dist/strategy/one_device.hpp>
#include <dist/strategy/step_graph.hpp>
#include <support/on_host.hpp>

#include "nn/adversarial.hpp"
#include "nn/run_network.hpp"

namespace nn = dist::nn;

static_assert(std::is_same_v<dist::nn::CuDnn, dist::nn::Cuda>);  // the name before version 0.3

namespace {

using Net = nn::Sequential<nn::Input<5, 4, 1>, nn::Conv2D<6, 2, nn::Relu, 1, nn::Same, nn::GlorotUniform, nn::NoBias>,
                           nn::BatchNormalization<nn::SynchronizedStatistics>, nn::MaxPool2D<2>, nn::Flatten,
                           nn::Dense<17, nn::Relu>, nn::Dense<9>, nn::ReLU, nn::Dense<3>>;
// A model of texts of 20 words, and then of the images computed from them.
using Words = nn::Sequential<
    nn::Input<20>, nn::Named<"words", nn::Embedding<19, 4>>, nn::LearnedPositions<>, nn::Unembed<"words">,
    nn::Bias<nn::GlorotUniform>, nn::LayerNormalization<>, nn::Dense<6, nn::Tanh>, nn::RMSNormalization<>,
    nn::Dense<4, nn::Linear, nn::GlorotUniform, nn::NoBias>, nn::MultiHeadAttention<2, 3, nn::AttendToPast>,
    nn::Dropout<10>, nn::Reshape<5, 4, 4>, nn::DepthwiseConv2D<2, nn::Linear, 1, nn::Same>, nn::GroupNormalization<2>,
    nn::MaxPool2D<3, 2, nn::Same>, nn::AveragePool2D<2, 1, nn::Same>,
    nn::Concatenate<nn::GlobalAveragePool2D, nn::GlobalMaxPool2D, nn::Sequential<nn::Flatten, nn::Softmax>>,
    nn::Dense<3>>;
constexpr std::size_t rows = 6;  // per replica

/// A buffer with a replica's values, in the memory of its device.
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
  using Space = typename Buffer::Device::Space;
  const dist::TensorView<const typename Buffer::Element, Space> all{buffer.component(replica).data(), buffer.shape()};
  return all.rows(replica.replica_id().index() * rows, rows);
}

/// Images or word ids, `count` rows.
template <class Model>
dist::Tensor<float> inputs(std::size_t count) {
  constexpr bool are_of_words = Model::InputShape::rank == 1;
  dist::Tensor<float> made{Model::InputShape::shape().stacked(count)};
  for (std::size_t i = 0; i < made.size(); ++i) {
    const auto number = static_cast<float>((i * 7) % 19);
    made[i] = are_of_words ? number : number / 19.0F - 0.5F;
  }
  return made;
}

struct Trained {
  std::vector<float> losses;
  std::vector<float> weights;
  double accuracy, mean_loss;
};

template <class Model, class Backend, class S>
Trained train(S& strategy) {
  const std::size_t batch = rows * strategy.num_replicas_in_sync();
  dist::Tensor<std::int32_t> classes{dist::Shape{batch}};
  dist::Tensor<float> weighing{dist::Shape{batch}};
  for (std::size_t i = 0; i < batch; ++i) classes[i] = static_cast<std::int32_t>(i % 3);
  for (std::size_t i = 0; i < batch; ++i) weighing[i] = 0.5F + static_cast<float>(i % 2);
  const auto x = on_device(strategy, inputs<Model>(batch));
  const auto labels = on_device(strategy, classes);
  const auto weights = on_device(strategy, weighing);

  nn::Network<Model, Backend> net{strategy, 3};
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
      const float penalty = nn::regularization_loss(replica, net, nn::L1L2{1e-3F, 1e-2F});
      optimizer.apply_gradients(replica);
      accuracy.update(replica, logits, part_of(labels, replica));
      mean_loss.update(replica, logits, part_of(labels, replica));
      return loss.value() + penalty;
    })));
  const auto scope = strategy.scope();
  const auto& parameters = net.parameters().read(scope);
  trained.weights.assign(parameters.data(), parameters.data() + parameters.size());
  trained.accuracy = accuracy.result(scope);
  trained.mean_loss = mean_loss.result(scope);
  return trained;
}

void check_same_losses(const Trained& trained, const Trained& expected) {
  REQUIRE(trained.losses.size() == expected.losses.size());
  for (std::size_t i = 0; i < expected.losses.size(); ++i)
    CHECK(trained.losses[i] == doctest::Approx(expected.losses[i]).epsilon(1e-5));
  CHECK(expected.losses.back() < expected.losses.front());
}
void check_same(const Trained& trained, const Trained& expected) {
  check_same_losses(trained, expected);
  REQUIRE(trained.weights.size() == expected.weights.size());
  for (std::size_t i = 0; i < expected.weights.size(); ++i)
    CHECK(trained.weights[i] == doctest::Approx(expected.weights[i]).epsilon(1e-4));
  CHECK(trained.accuracy == expected.accuracy);
  CHECK(trained.mean_loss == doctest::Approx(expected.mean_loss).epsilon(1e-6));
}

}  // namespace

TEST_CASE("a network trains on one GPU as on the host") {
  dist::OneDevice<dist::Cpu> host;
  dist::OneDevice<dist::Cuda> gpu;
  check_same(train<Net, nn::Cuda>(gpu), train<Net, nn::Reference>(host));
}

TEST_CASE("a network trains on several GPUs as on host replicas") {
  const std::size_t replicas = conformance::replicas_of_environment();
  dist::Mirrored<dist::ThreadAllReduce, dist::Cpu> host{replicas};
  dist::Mirrored<dist::DirectAllReduce, dist::Cuda> gpus{replicas};
  check_same(train<Net, nn::Cuda>(gpus), train<Net, nn::Reference>(host));
  // Losses only: Adam amplifies rounding errors of gradients that are 0, such as the gradient of a key's bias.
  check_same_losses(train<Words, nn::Cuda>(gpus), train<Words, nn::Reference>(host));
}

TEST_CASE("a generator and a critic train on several GPUs as on the host") {
  dist::OneDevice<dist::Cpu> host;
  dist::Mirrored<dist::DirectAllReduce, dist::Cuda> gpus{conformance::replicas_of_environment()};
  adversarial::check_same(adversarial::train<nn::Cuda>(gpus), adversarial::train<nn::Reference>(host));
}

TEST_CASE_TEMPLATE("steps after the first allocate no GPU memory and never wait, so they can be captured as graphs",
                   Model, Net, Words) {
  dist::OneDevice<dist::Cuda> gpu;
  const auto x = on_device(gpu, inputs<Model>(rows));
  const auto labels = on_device(gpu, dist::Tensor<std::int32_t>{{rows}, {0, 1, 2, 0, 1, 2}});
  const auto train = [&](auto&& run) {
    nn::Network<Model, nn::Cuda> net{gpu, 3};
    nn::Optimizer optimizer{gpu, net, nn::Adam{.learning_rate = 0.02F}};
    const auto step = [&](auto& replica) {
      const auto logits = net.forward(replica, part_of(x, replica));
      net.backward(replica, nn::sparse_categorical_crossentropy(replica, logits, part_of(labels, replica), rows));
      optimizer.apply_gradients(replica);
    };
    gpu.run(step);
    for (int again = 0; again < 3; ++again) run(step);
    return net.parameters().read(gpu.scope());
  };
  dist::StepGraph graph{gpu};  // rejects steps that allocate or wait
  CHECK(train([&](const auto& step) { graph.run(step); }) == train([&](const auto& step) { gpu.run(step); }));
  CHECK(graph.instantiations() == 1);
}

TEST_CASE("a loss on a GPU reports the row of an invalid label, and a batch without rows has zero gradients") {
  dist::OneDevice<dist::Cuda> gpu;
  const auto x = on_device(gpu, dist::Tensor<float>{dist::Shape{rows, 5, 4, 1}});
  const auto labels = on_device(gpu, dist::Tensor<std::int64_t>{dist::Shape{rows}, {0, 1, 2, 0, 3, -1}});
  nn::Network<Net, nn::Cuda> net{gpu, 3};
  nn::Metric mean_loss{gpu, nn::MeanOf{nn::SparseCategoricalCrossentropy{}}};
  gpu.run([&](auto& replica) {
    const auto logits = net.forward(replica, part_of(x, replica));
    const auto loss = nn::sparse_categorical_crossentropy(replica, logits, part_of(labels, replica), rows);
    for (int again = 0; again < 2; ++again)
      CHECK_THROWS_WITH_AS(static_cast<void>(loss.value()), doctest::Contains("Label 3 of example 4 is not a class"),
                           dist::InvalidArgument);
    dist::Tensor<float> slopes{logits.values.shape()};
    replica.queue().copy(logits.gradient.elements(), slopes.elements());
    replica.queue().wait();
    for (std::size_t i = 0; i < slopes.size(); ++i) CHECK(std::isnan(slopes[i]) == (i / 3 >= 4));
  });
  const auto measure = [&](std::size_t count) {
    gpu.run([&](auto& replica) {
      const auto logits = net.forward(replica, part_of(x, replica).rows(0, count), nn::inference);
      mean_loss.update(replica, logits, part_of(labels, replica).rows(0, count));
    });
    return mean_loss.result(gpu.scope());
  };
  const double of_four = measure(4);
  CHECK_THROWS_WITH_AS(static_cast<void>(measure(rows)), doctest::Contains("Label 3 of example 4"),
                       dist::InvalidArgument);
  CHECK(mean_loss.result(gpu.scope()) == of_four);  // the failed batch does not count
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

TEST_CASE("unreduced losses are on the GPU like their outputs, and MeanOf averages them there") {
  using Unreduced = nn::Reduced<nn::SparseCategoricalCrossentropy, nn::Reduction::None>;
  const dist::Tensor<float> logits{dist::Shape{3, 2}, {0.5F, -1, 2, 0, -3, 4}};
  const dist::Tensor<std::int32_t> classes{dist::Shape{3}, {1, 0, 1}};
  const dist::Tensor<float> weighing{dist::Shape{3}, {1, 0.5F, 3}};
  std::vector<float> expected(3);
  nn::per_example_losses(nn::SparseCategoricalCrossentropy{}, logits, classes, std::span{expected});
  dist::OneDevice<dist::Cuda> gpu;
  const auto x = on_device(gpu, logits);
  const auto labels = on_device(gpu, classes);
  const auto weights = on_device(gpu, weighing);
  const auto wrong = on_device(gpu, dist::Tensor<std::int32_t>{dist::Shape{3}, {1, 2, 1}});
  auto losses = gpu.buffer<float>(dist::Shape{3}, "losses");
  gpu.run([&](auto& replica) {
    const auto all = [&](const auto& buffer) {
      using Buffer = std::remove_cvref_t<decltype(buffer)>;
      return dist::TensorView<const typename Buffer::Element, dist::Cuda::Space>{buffer.component(replica).data(),
                                                                                 buffer.shape()};
    };
    const auto place = losses.component(replica);
    Unreduced{}(replica, all(x), all(labels), place);
    const auto found = support::on_host(replica.queue(), place);
    double total = 0, weighted = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      CHECK(found[i] == doctest::Approx(expected[i]));
      total += static_cast<double>(expected[i]);
      weighted += static_cast<double>(expected[i] * weighing[i]);
    }
    CHECK(nn::compute_average_loss(replica, place) == doctest::Approx(total / 3));
    CHECK(nn::compute_average_loss(
              replica, place, {.sample_weight = std::as_const(weights).component(replica), .global_batch_size = 5}) ==
          doctest::Approx(weighted / 5));
    CHECK_THROWS_WITH_AS(Unreduced{}(replica, all(x), all(wrong), place),
                         doctest::Contains("Label 2 of example 1 is not a class"), dist::InvalidArgument);
    CHECK_THROWS_AS(Unreduced{}(replica, all(x), all(labels), place.first(2)), dist::ShapeMismatch);
  });
}

TEST_CASE_TEMPLATE("16-bit factors on a GPU match the host", Half, dist::BFloat16, dist::Float16) {
  using Small = nn::Sequential<nn::Input<5, 4, 2>, nn::Conv2D<3, 2, nn::Relu, 1, nn::Same>, nn::Flatten, nn::Dense<4>>;
  using OnGpu = nn::MixedPrecision<nn::Cuda, Half>;
  using OnHost = nn::MixedPrecision<nn::Reference, Half>;
  const auto parameters = dist_test::numbers(Small::padded_count, 1);
  const auto batch = dist_test::numbers(3 * Small::InputShape::elements, 2);
  dist_test::Bench<OnGpu> bench;
  nn::Workspace<Small, OnGpu, float> gpu{bench.queue()};
  nn::Workspace<Small, OnHost, float> host;
  nn::Workspace<Small, nn::Reference, float> unrounded;
  const auto found = dist_test::pass(bench, gpu, parameters, batch);
  const auto expected = dist_test::pass(host, parameters, batch);
  // An activation that differs in its last bit may be rounded to the other side, a difference of 2^-8.
  CHECK(dist_test::difference(found.outputs, expected.outputs) < 1e-3);
  CHECK(dist_test::difference(found.gradients, expected.gradients) < 1e-3);
  CHECK(dist_test::difference(found.outputs, dist_test::pass(unrounded, parameters, batch).outputs) >
        (std::same_as<Half, dist::BFloat16> ? 1e-4 : 1e-5));
}

TEST_CASE("a loss scale on a GPU restores the gradients, and is halved if they are not finite") {
  dist::OneDevice<dist::Cuda> gpu;
  nn::Network<Net, nn::Cuda> net{gpu, 3};
  nn::LossScale scale{gpu};
  const auto x = on_device(gpu, dist::Tensor<float>{dist::Shape{rows, 5, 4, 1}});
  gpu.run([&](auto& replica) {
    for (const float slope : {0.25F, std::numeric_limits<float>::infinity()}) {
      const auto y = net.forward(replica, part_of(x, replica));
      replica.queue().fill(y.gradient.elements(), slope);
      scale.apply(replica, y);
      net.backward(replica, 0);
      CHECK(scale.remove(replica, net) == std::isfinite(slope));
      constexpr std::size_t last_bias = Net::parameters[Net::parameters.size() - 1].offset;
      const auto gradients = support::on_host(replica.queue(), std::as_const(net).gradients().component(replica));
      CHECK(gradients[last_bias] == static_cast<float>(rows) * slope);
    }
  });
  CHECK(scale.value(gpu.scope()) == 16384);
}
