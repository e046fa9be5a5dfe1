// Trains a libtorch module on several replicas, with parameters and gradients in the strategy's memory.
#include <cmath>
#include <cstdio>

#include <dist/torch/module.hpp>

#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>
#include <torch/optim/adam.h>

#include <dist/comm/memory/thread_all_reduce.hpp>
#include <dist/core/random.hpp>
#include <dist/nn/optimizer.hpp>
#include <dist/nn/optimizers/adam.hpp>
#include <dist/strategy/mirrored.hpp>

#include "check.hpp"

namespace {

namespace nn = dist::nn;
namespace F = torch::nn::functional;

constexpr std::size_t global_batch = 64, steps = 200;

// [module]
struct CurveImpl : torch::nn::Module {  // an ordinary libtorch module
  CurveImpl() {
    register_module("hidden", hidden);
    register_module("out", out);
  }
  torch::Tensor forward(const torch::Tensor& x) { return out->forward(torch::tanh(hidden->forward(x))); }

  torch::nn::Linear hidden{1, 32}, out{32, 1};
};
TORCH_MODULE(Curve);
// [/module]

/// Points x from -3 to 3 with values sin(x).
struct Batch {
  explicit Batch(std::size_t step) : x({global_batch, 1}), y({global_batch, 1}) {
    const dist::RandomStream random{/*seed=*/7};
    for (std::size_t i = 0; i < global_batch; ++i) {
      x[i] = 6 * random.uniform(step * global_batch + i) - 3;
      y[i] = std::sin(x[i]);
    }
  }
  dist::Tensor<float> x, y;
};

/// Trains with libtorch alone. Returns the loss of the last step.
float train_alone() {
  torch::manual_seed(3);
  Curve net;
  torch::optim::Adam optimizer{net->parameters(), torch::optim::AdamOptions{1e-2}};
  float last = 0;
  for (std::size_t step = 0; step < steps; ++step) {
    const Batch batch{step};
    optimizer.zero_grad();
    const torch::Tensor loss =
        F::mse_loss(net->forward(dist::torch_tensor(batch.x.view())), dist::torch_tensor(batch.y.view()));
    loss.backward();
    optimizer.step();
    last = loss.item<float>();
  }
  return last;
}

}  // namespace

int main() {
  torch::manual_seed(3);
  // [train]
  dist::Mirrored<dist::ThreadAllReduce> strategy{2};
  auto net = dist::torch_module(strategy, [] { return Curve{}; });  // one module per replica, with equal weights
  nn::Optimizer optimizer{strategy, net, nn::Adam{.learning_rate = 1e-2F}};

  auto step = [&](auto& replica, const Batch& batch) {
    const dist::IndexRange mine = replica.shard(global_batch);
    const torch::Tensor x = dist::torch_tensor(batch.x.view().rows(mine.begin, mine.size()));
    const torch::Tensor y = dist::torch_tensor(batch.y.view().rows(mine.begin, mine.size()));
    const auto sum = F::MSELossFuncOptions{}.reduction(torch::kSum);
    const torch::Tensor loss = F::mse_loss(net.on(replica)->forward(x), y, sum) / double{global_batch};
    net.backward(replica, loss);         // libtorch's backward; gradients are in the strategy's memory
    optimizer.apply_gradients(replica);  // sum over replicas and update, in one pass
    return loss.template item<float>();
  };
  float first = 0, last = 0;
  for (std::size_t i = 0; i < steps; ++i) {
    last = strategy.reduce(dist::sum, strategy.run([&](auto& replica) { return step(replica, Batch{i}); }));
    if (i == 0) first = last;
  }
  // [/train]
  const float alone = train_alone();
  std::printf("loss %.4f -> %.4f, libtorch alone %.4f\n", static_cast<double>(first), static_cast<double>(last),
              static_cast<double>(alone));
  check(last < 0.02F, "the module learns the sine; a constant has a loss of about 0.5");
  check(std::abs(last - alone) < 0.1F * alone, "two replicas reach the loss of libtorch alone");
}
