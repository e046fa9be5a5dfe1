// The training step of libtorch modules with Mirrored on data in memory: the guide's CNN, and a perceptron with more
// gradients than computation. For DistributedDataParallel on the same libtorch, use Debian's PyTorch:
// /usr/bin/python3 benchmarks/peers/pytorch_step.py ddp [--network perceptron]
//
//   bench_torch_step [ROUNDS [JSON]]        all contenders in turns, ratios
//   bench_torch_step --only NAME [SECONDS]  one contender alone, for profilers and comparisons
#include <cstddef>
#include <cstdint>
#include <memory>

#include <dist/torch/module.hpp>

#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include <dist/dist.hpp>
#include <dist/nn/optimizer.hpp>
#include <dist/nn/optimizers/sgd.hpp>

#include "support/named_contenders.hpp"
#include "support/training_steps.hpp"

namespace {

namespace nn = dist::nn;
using Mirrored = dist::Mirrored<dist::ThreadAllReduce>;

torch::nn::Sequential make_cnn() {
  return torch::nn::Sequential{torch::nn::Conv2d{1, 32, 3},   torch::nn::ReLU{}, torch::nn::Flatten{},
                               torch::nn::Linear{21632, 128}, torch::nn::ReLU{}, torch::nn::Linear{128, 10}};
}
/// 11 million parameters.
torch::nn::Sequential make_perceptron() {
  return torch::nn::Sequential{torch::nn::Flatten{}, torch::nn::Linear{784, 3000},
                               torch::nn::ReLU{},    torch::nn::Linear{3000, 2900},
                               torch::nn::ReLU{},    torch::nn::Linear{2900, 10}};
}

struct Run {
  Run(std::size_t replicas, std::size_t images, torch::nn::Sequential (*make)())
      : strategy(replicas),
        net(strategy, make),
        x(dist::Shape{replicas * images, 1, 28, 28}),
        y(dist::Shape{replicas * images}) {
    const dist::RandomStream random{3};
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = random.uniform(i);
    for (std::size_t i = 0; i < y.size(); ++i) y[i] = static_cast<std::int64_t>(random.below(10, i + x.size()));
  }

  void step() {
    namespace F = torch::nn::functional;
    strategy.run([&](auto& replica) {
      const dist::IndexRange mine = replica.shard(y.size());
      const auto sum = F::CrossEntropyFuncOptions{}.reduction(torch::kSum);
      const torch::Tensor logits = net.on(replica)->forward(dist::torch_tensor(x.view().rows(mine.begin, mine.size())));
      const torch::Tensor losses =
          F::cross_entropy(logits, dist::torch_tensor(y.view().rows(mine.begin, mine.size())), sum);
      net.backward(replica, torch::Tensor{losses / static_cast<double>(y.size())});
      optimizer.apply_gradients(replica);
    });
  }

  Mirrored strategy;
  dist::TorchModule<torch::nn::Sequential> net;
  nn::Optimizer<Mirrored, dist::TorchModule<torch::nn::Sequential>, nn::SGD> optimizer{strategy, net,
                                                                                       nn::SGD{.learning_rate = 1e-3F}};
  dist::Tensor<float> x;
  dist::Tensor<std::int64_t> y;
};

/// Runs one global step. Returns the number of images.
bench::Work make(std::size_t replicas, std::size_t images, torch::nn::Sequential (*module)()) {
  const auto run = std::make_shared<Run>(replicas, images, module);
  return [run] {
    run->step();
    return static_cast<double>(run->y.size());
  };
}

const bench::NamedContender contenders[] = {
    {"cnn_one", "CNN, Mirrored, 1 x 64", [] { return make(1, 64, make_cnn); }},
    {"cnn", "CNN, Mirrored, 2 x 64", [] { return make(2, 64, make_cnn); }},
    {"perceptron_one", "perceptron, Mirrored, 1 x 16", [] { return make(1, 16, make_perceptron); }},
    {"perceptron", "perceptron, Mirrored, 2 x 16", [] { return make(2, 16, make_perceptron); }},
};

constexpr bench::Quotient quotients[] = {
    {"CNN: 2 replicas over 1", "cnn", "cnn_one"},
    {"perceptron: 2 replicas over 1", "perceptron", "perceptron_one"},
};

}  // namespace

int main(int argc, char** argv) {
  return bench::compare_training_steps(
      argc, argv, contenders, quotients,
      {.title = "training step of libtorch modules, SGD",
       .help = "Times the training step of libtorch modules, for all contenders in turns or for one."});
}
