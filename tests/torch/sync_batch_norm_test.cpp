#include <dist/torch/sync_batch_norm.hpp>

#include <cstddef>
#include <string>
#include <vector>

#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>

#include <dist/nn/losses/sparse_categorical_crossentropy.hpp>
#include <dist/nn/optimizer.hpp>
#include <dist/nn/optimizers/sgd.hpp>
#include <dist/strategy/mirrored.hpp>
#include <dist/torch/module.hpp>

#undef CHECK  // of libtorch's log
#include <doctest/doctest.h>
#include <support/what_throws.hpp>

#include "convolution_net.hpp"

namespace nn = dist::nn;
using convolution::Batch;
using convolution::difference;

namespace {

/// Convolution, normalisation of images, dense layer, normalisation of rows, dense layer.
template <class OfImages, class OfRows>
struct NormalisedImpl : torch::nn::Module {
  NormalisedImpl() {
    register_module("conv", conv);
    register_module("norm1", norm1);
    register_module("hidden", hidden);
    register_module("norm2", norm2);
    register_module("out", out);
  }
  torch::Tensor forward(const torch::Tensor& x) {
    const torch::Tensor images = norm1->forward(conv->forward(x.reshape({x.size(0), 1, 6, 6})));
    return out->forward(torch::relu(norm2->forward(hidden->forward(torch::relu(images).flatten(1)))));
  }

  torch::nn::Conv2d conv{torch::nn::Conv2dOptions{1, 3, 3}};
  OfImages norm1{3};
  torch::nn::Linear hidden{3 * 4 * 4, 4};
  OfRows norm2{torch::nn::BatchNormOptions{4}.momentum(0.3).eps(1e-3)};
  torch::nn::Linear out{4, 5};
};
using Alone = NormalisedImpl<torch::nn::BatchNorm2d, torch::nn::BatchNorm1d>;
using Synchronised = NormalisedImpl<dist::TorchSyncBatchNorm, dist::TorchSyncBatchNorm>;

template <class Net>
std::shared_ptr<Net> made() {
  torch::manual_seed(5);
  return std::make_shared<Net>();
}

constexpr std::size_t steps = 8;

/// The losses of libtorch with all rows in one process, and its net.
std::pair<std::vector<double>, std::shared_ptr<Alone>> of_libtorch(std::size_t rows) {
  auto net = made<Alone>();
  torch::optim::SGD optimizer{net->parameters(), torch::optim::SGDOptions{0.05}};
  std::vector<double> losses;
  for (std::size_t step = 0; step < steps; ++step) {
    optimizer.zero_grad();
    const Batch batch{step, rows};
    const torch::Tensor loss = convolution::sum_of_losses(net, batch, 0, rows) / static_cast<double>(rows);
    loss.backward();
    optimizer.step();
    losses.push_back(loss.item<double>());
  }
  return {losses, net};
}

/// Returns the losses of a network on replicas. Each replica has a part of the rows, which may be empty.
template <class S, class Net, class Optimizer>
std::vector<double> losses_of(S& strategy, Net& net, Optimizer& optimizer, std::size_t rows) {
  std::vector<double> losses;
  for (std::size_t step = 0; step < steps; ++step) {
    const Batch batch{step, rows};
    losses.push_back(strategy.reduce(dist::sum, strategy.run([&](auto& replica) {
      const dist::IndexRange mine = replica.shard(rows);
      const auto outputs = net.forward(replica, batch.x.view().rows(mine.begin, mine.size()));
      const auto loss = nn::sparse_categorical_crossentropy(
          replica, outputs, batch.y.view().rows(mine.begin, mine.size()), nn::GlobalBatchSize{rows});
      net.backward(replica, loss);
      optimizer.apply_gradients(replica);
      return static_cast<double>(loss.value());
    })));
  }
  return losses;
}

}  // namespace

TEST_CASE("replicas normalise by the statistics of all rows, as libtorch does with all rows in one process") {
  // With 3 rows the last of 4 replicas has none.
  for (const std::size_t rows : {convolution::global_batch, std::size_t{3}}) {
    const auto [expected, alone] = of_libtorch(rows);
    for (const std::size_t replicas : {1U, 2U, 3U, 4U}) {
      CAPTURE(rows);
      CAPTURE(replicas);
      dist::Mirrored<dist::ThreadAllReduce> strategy{replicas};
      auto net = dist::torch_module(strategy, [] { return made<Synchronised>(); });
      nn::Optimizer optimizer{strategy, net, nn::SGD{.learning_rate = 0.05F}};
      CHECK(difference(losses_of(strategy, net, optimizer, rows), expected) < 1e-4);
      for (std::size_t replica = 0; replica < replicas; ++replica) {
        const auto& module = net.on(strategy.scope(), replica);
        for (const auto& buffer : alone->named_buffers()) {
          CAPTURE(buffer.key());
          CHECK(torch::allclose(module->named_buffers()[buffer.key()], buffer.value(), 1e-4, 1e-5));
        }
        module->eval();
        alone->eval();
        const Batch batch{1, rows};
        const torch::Tensor x = dist::torch_tensor(batch.x.view());
        CHECK(torch::allclose(module->forward(x), alone->forward(x), 1e-3, 1e-4));
      }
    }
  }
}

TEST_CASE("a TorchSyncBatchNorm names what it cannot normalise") {
  dist::TorchSyncBatchNorm norm{3};
  const auto refusal = [&](const torch::Tensor& x) {
    return support::what_throws<dist::InvalidArgument>([&] { static_cast<void>(norm->forward(x)); });
  };
  CHECK(refusal(torch::ones({4, 3})).starts_with("A TorchSyncBatchNorm was called in training mode outside a step"));
  CHECK(refusal(torch::ones({4, 2})).starts_with("A TorchSyncBatchNorm of 3 channels has an input of shape [4, 2]"));
  norm->attach([](std::span<double>) {});
  CHECK(refusal(torch::ones({1, 3})).starts_with("A TorchSyncBatchNorm cannot normalise a single value"));
  norm->eval();
  CHECK(torch::allclose(norm->forward(torch::ones({1, 3})), torch::ones({1, 3})));
}
