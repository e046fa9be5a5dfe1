// A module of libtorch, batches of images for it, and the same training with libtorch only.
#pragma once

#include <dist/torch/module.hpp>

#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <dist/core/tensor.hpp>

namespace convolution {

constexpr std::size_t global_batch = 12, steps = 20;

struct NetImpl : torch::nn::Module {
  NetImpl() {
    register_module("conv1", conv1);
    register_module("dense", dense);
  }
  torch::Tensor forward(const torch::Tensor& x) {
    const torch::Tensor images = x.reshape({x.size(0), 1, 6, 6});
    return dense->forward(torch::relu(conv1->forward(images)).flatten(1));
  }

  torch::nn::Conv2d conv1{torch::nn::Conv2dOptions{1, 3, 3}};
  torch::nn::Linear dense{3 * 4 * 4, 5};
};
TORCH_MODULE(Net);

/// Returns a net with libtorch's initial weights for a seed.
inline Net make_net(std::uint64_t seed) {
  torch::manual_seed(seed);
  return Net{};
}

/// Two alternating batches of a learnable task.
struct Batch {
  explicit Batch(std::size_t step, std::size_t rows = global_batch) : x(dist::Shape{rows, 36}), y(dist::Shape{rows}) {
    for (std::size_t i = 0; i < x.size(); ++i)
      x[i] = static_cast<float>((i * i + 31 * i + 13 * (step % 2)) % 97) / 48 - 1;
    for (std::size_t row = 0; row < rows; ++row) y[row] = static_cast<std::int64_t>((3 * row + step % 2) % 5);
  }
  dist::Tensor<float> x;
  dist::Tensor<std::int64_t> y;
};

/// Returns the sum of the losses of a part of the batch.
template <class Module>
torch::Tensor sum_of_losses(Module& module, const Batch& batch, std::size_t first, std::size_t rows) {
  namespace F = torch::nn::functional;
  const torch::Tensor x = dist::torch_tensor(batch.x.view().rows(first, rows));
  const torch::Tensor y = dist::torch_tensor(batch.y.view().rows(first, rows));
  return F::cross_entropy(module->forward(x), y, F::CrossEntropyFuncOptions{}.reduction(torch::kSum));
}

/// Returns the losses of libtorch's own loop, in one thread and one process.
template <class Optimizer, class Options>
std::vector<double> losses_of_libtorch(std::uint64_t seed, Options options) {
  Net net = make_net(seed);
  Optimizer optimizer{net->parameters(), options};
  std::vector<double> losses;
  for (std::size_t step = 0; step < steps; ++step) {
    optimizer.zero_grad();
    const Batch batch{step};
    const torch::Tensor loss = sum_of_losses(net, batch, 0, global_batch) / static_cast<double>(global_batch);
    loss.backward();
    optimizer.step();
    losses.push_back(loss.item<double>());
  }
  return losses;
}

/// Runs one step on a strategy: each replica takes its part of the batch. Returns the loss of the global batch.
template <class S, class TorchModule, class Apply>
double step_of(S& strategy, TorchModule& net, std::size_t step, Apply&& apply) {
  const Batch batch{step};
  return strategy.reduce(dist::sum, strategy.run([&](auto& replica) {
    const std::size_t replicas = replica.num_replicas_in_sync(), id = replica.replica_id().index();
    const std::size_t first = global_batch * id / replicas, end = global_batch * (id + 1) / replicas;
    const torch::Tensor loss =
        sum_of_losses(net.on(replica), batch, first, end - first) / static_cast<double>(global_batch);
    apply(replica, loss);
    return loss.template item<double>();
  }));
}

/// Returns the losses of the library's loop from the same weights.
template <class S, class TorchModule, class Optimizer>
std::vector<double> losses_of(S& strategy, TorchModule& net, Optimizer& optimizer, std::size_t first = 0,
                              std::size_t end = steps) {
  std::vector<double> losses;
  for (std::size_t step = first; step < end; ++step)
    losses.push_back(step_of(strategy, net, step, [&](auto& replica, const torch::Tensor& loss) {
      net.backward(replica, loss);
      optimizer.apply_gradients(replica);
    }));
  return losses;
}

/// Returns the largest difference between two lists, relative to the second.
inline double difference(const std::vector<double>& one, const std::vector<double>& other) {
  if (one.size() != other.size()) return INFINITY;
  double largest = 0;
  for (std::size_t i = 0; i < one.size(); ++i)
    largest = std::max(largest, std::abs(one[i] - other[i]) / std::abs(other[i]));
  return largest;
}

}  // namespace convolution
