#include <dist/nn/onednn/backend.hpp>

#include <vector>

#include <dist/nn/layers/activate.hpp>
#include <dist/nn/layers/batch_normalization.hpp>
#include <dist/nn/layers/conv2d.hpp>
#include <dist/nn/layers/dense.hpp>
#include <dist/nn/layers/depthwise_conv2d.hpp>
#include <dist/nn/layers/pool2d.hpp>
#include <dist/nn/layers/views.hpp>
#include <dist/nn/losses/sparse_categorical_crossentropy.hpp>
#include <dist/nn/network.hpp>
#include <dist/nn/optimizer.hpp>
#include <dist/nn/optimizers/adam.hpp>
#include <dist/nn/reference/backend.hpp>
#include <dist/strategy/mirrored.hpp>

#include <doctest/doctest.h>

#include "nn/run_network.hpp"
#include "nn/run_normalized.hpp"

namespace nn = dist::nn;

TEST_CASE("oneDNN is a back end for float") {
  CHECK(nn::Backend<nn::OneDnn>);
  CHECK(nn::OneDnn::supports<float>);
  CHECK_FALSE(nn::OneDnn::supports<double>);
}

TEST_CASE("networks by oneDNN match the plain loops") {
  using Cnn = nn::Sequential<nn::Input<14, 14, 1>, nn::Conv2D<32, 3, nn::Relu>, nn::Flatten, nn::Dense<128, nn::Relu>,
                             nn::Dense<10>>;
  using Mixed = nn::Sequential<nn::Input<144>, nn::Reshape<12, 12, 1>, nn::ReLU, nn::Conv2D<8, 3>, nn::ReLU,
                               nn::MaxPool2D<2>, nn::Conv2D<6, 3, nn::Relu>, nn::Flatten, nn::Dense<10>>;
  dist_test::check_against<Cnn, nn::OneDnn, nn::Reference>({16, 7, 0, 16});
  dist_test::check_against<Mixed, nn::OneDnn, nn::Reference>({4, 1, 9});
}

TEST_CASE("dense layers on several axes and layers without bias by oneDNN match the plain loops") {
  // Convolutions by products and by primitives, and a product in two halves.
  using Images =
      nn::Sequential<nn::Input<4, 8, 8>, nn::Dense<6, nn::Relu, nn::GlorotUniform, nn::NoBias>,
                     nn::Conv2D<8, 3, nn::Relu, 1, nn::Same, nn::GlorotUniform, nn::NoBias>,
                     nn::DepthwiseConv2D<3, nn::Tanh, 2, nn::Same, 2, nn::GlorotUniform, nn::NoBias>, nn::Dense<3>,
                     nn::Conv2D<4, 2, nn::Linear, 1, nn::Valid, nn::GlorotUniform, nn::NoBias>>;
  using Long = nn::Sequential<nn::Input<4100>, nn::Dense<5, nn::Relu, nn::GlorotUniform, nn::NoBias>>;
  dist_test::check_against<Images, nn::OneDnn, nn::Reference>({5, 1, 0, 3});
  dist_test::check_against<Long, nn::OneDnn, nn::Reference>({3});
  dist_test::check_gradients<Images, nn::Reference>(1);
}

TEST_CASE("concurrent replicas compute the same as a single replica") {
  using Net = nn::Sequential<nn::Input<6, 6, 1>, nn::Conv2D<4, 3, nn::Relu>, nn::Flatten, nn::Dense<3>>;
  const auto gradients_with = [](std::size_t replicas) {
    dist::Mirrored<dist::ThreadAllReduce> strategy{replicas};
    nn::Network<Net, nn::OneDnn> net{strategy};
    dist::Tensor<float> x{dist::Shape{5, 6, 6}};
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 13) / 13;
    std::vector<std::vector<float>> all(replicas);
    for (int step = 0; step < 3; ++step)
      strategy.run([&](auto& replica) {
        const auto y = net.forward(replica, x);
        for (std::size_t i = 0; i < y.gradient.size(); ++i) y.gradient.data()[i] = y.values.data()[i] - 1;
        net.backward(replica, 0);
        const auto gradients = net.gradients().component(replica);
        all[replica.local_index()].assign(gradients.begin(), gradients.end());
      });
    return all;
  };
  const auto alone = gradients_with(1);
  const auto together = gradients_with(3);
  for (const auto& gradients : together) CHECK(gradients == alone[0]);
}

TEST_CASE("networks with BatchNormalization by oneDNN match the plain loops, with and without rows") {
  using Net = dist_test::NormalizedNet<nn::SynchronizedStatistics>;
  dist::Mirrored<dist::ThreadAllReduce> strategy{2};
  CHECK(dist_test::difference(dist_test::run_normalized<Net, nn::OneDnn, float>(strategy),
                              dist_test::run_normalized<Net, nn::Reference, double>(strategy)) < 1e-5);
}

TEST_CASE("gradients computed by their owners train by oneDNN like stored ones, with fused activations") {
  using Net = nn::Sequential<nn::Input<10, 10, 1>, nn::Conv2D<4, 3, nn::Relu>, nn::Flatten, nn::Dense<520, nn::Relu>,
                             nn::Dense<33, nn::Relu>, nn::Dense<3>>;
  const auto trained = []<class Storage>(std::size_t replicas, Storage) {
    dist::Mirrored<dist::ThreadAllReduce> strategy{replicas};
    nn::Network<Net, nn::OneDnn, float, Storage> net{strategy, 3};
    nn::Optimizer optimizer{strategy, net, nn::Adam{.learning_rate = 0.01f}};
    constexpr std::size_t rows = 12;
    dist::Tensor<float> x{dist::Shape{rows, 10, 10, 1}};
    dist::Tensor<std::int32_t> labels{dist::Shape{rows}};
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>((i * 7) % 19) / 19;
    for (std::size_t i = 0; i < rows; ++i) labels[i] = static_cast<std::int32_t>(i % 3);
    std::vector<float> losses;
    for (int step = 0; step < 8; ++step)
      losses.push_back(strategy.reduce(dist::sum, strategy.run([&](auto& replica) {
        const std::size_t share = rows / replicas;
        const std::size_t first = replica.replica_id().index() * share;
        const auto logits = net.forward(replica, dist::TensorView<const float>{x}.rows(first, share));
        const auto part = dist::TensorView<const std::int32_t>{labels}.rows(first, share);
        const auto loss = nn::sparse_categorical_crossentropy(replica, logits, part, rows);
        net.backward(replica, loss);
        optimizer.apply_gradients(replica);
        return loss.value();
      })));
    return losses;
  };
  const auto stored = trained(1, nn::StoredGradients{});
  CHECK(stored.back() < 0.9f * stored.front());
  for (const std::size_t replicas : {std::size_t{1}, std::size_t{2}, std::size_t{3}, std::size_t{4}}) {
    const auto owned = trained(replicas, nn::OwnerComputedGradients<4>{});
    for (std::size_t step = 0; step < stored.size(); ++step)
      CHECK(owned[step] == doctest::Approx(stored[step]).epsilon(1e-5));
  }
}
