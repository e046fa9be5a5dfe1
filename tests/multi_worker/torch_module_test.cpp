// ranks: 1 2
#include <dist/multi_worker.hpp>

#include <cstddef>
#include <string>
#include <vector>

#include <dist/comm/ring_all_reduce.hpp>
#include <dist/nn/optimizer.hpp>
#include <dist/nn/optimizers/adam.hpp>
#include <dist/torch/module.hpp>

#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adam.h>

#undef CHECK  // defined by libtorch's log
#include <doctest/doctest.h>
#include <support/what_throws.hpp>

#include "../torch/convolution_net.hpp"
#include "of_workers.hpp"

namespace nn = dist::nn;
using Workers = dist::MultiWorker<dist::RingAllReduce>;

TEST_CASE("losses of several workers equal libtorch's in one process, from the first worker's weights") {
  const std::vector<double> expected =
      convolution::losses_of_libtorch<torch::optim::Adam>(7, torch::optim::AdamOptions{0.01});
  for (const std::size_t replicas : {1U, 2U}) {
    CAPTURE(replicas);
    Workers strategy{{.replicas = replicas}};
    std::uint64_t seed = 7 + 10 * of_workers::my_rank();
    auto net = dist::torch_module(strategy, [&] { return convolution::make_net(seed++); });
    nn::Optimizer optimizer{strategy, net, nn::Adam{.learning_rate = 0.01F, .epsilon = 1e-8F}};
    CHECK(convolution::difference(convolution::losses_of(strategy, net, optimizer), expected) < 1e-5);

    // The copies of all replicas are bit-identical.
    strategy.run([&](auto& replica) {
      const auto mine = net.parameters().component(replica);
      std::vector<float> largest{mine.begin(), mine.end()}, smallest{largest};
      replica.all_reduce(dist::max, largest);
      replica.all_reduce(dist::min, smallest);
      CHECK(largest == smallest);
    });
  }
}

TEST_CASE("workers with equal seeds draw different random numbers after a module is created") {
  Workers strategy{{.replicas = 1}};
  const auto net = dist::torch_module(strategy, [] { return convolution::make_net(5); });
  strategy.run([&](auto& replica) {
    const torch::Tensor drawn = torch::rand({4});
    std::vector<float> largest(drawn.data_ptr<float>(), drawn.data_ptr<float>() + 4), smallest{largest};
    replica.all_reduce(dist::max, largest);
    replica.all_reduce(dist::min, smallest);
    for (std::size_t i = 0; i < 4; ++i) CHECK((largest[i] == smallest[i]) == (replica.num_replicas_in_sync() == 1));
  });
}

TEST_CASE("processes that register children in different order are rejected, with the first difference") {
  if (of_workers::ranks() == 1) return;
  Workers strategy;
  const auto make = [] {
    const bool swapped = of_workers::my_rank() == 1;
    torch::nn::Sequential net;
    for (const bool first : {!swapped, swapped}) net->push_back(first ? "a" : "b", torch::nn::Linear{4, 4});
    return net;
  };
  CHECK(support::what_throws<dist::CollectiveMismatch>([&] { auto net = dist::torch_module(strategy, make); }) ==
        "The workers did not make the same module of libtorch (worker 0 has parameter 'a.weight' of shape [4, 4], "
        "worker 1 "
        "has parameter 'b.weight' of shape [4, 4]). Register the same children, parameters and buffers in the same "
        "order on "
        "every worker.");
  // They continue together.
  auto net = dist::torch_module(strategy, [] { return torch::nn::Linear{2, 2}; });
  CHECK(net.layout().size() == 2);
}

TEST_CASE("assign gives all processes the tensors of the first one") {
  Workers strategy{{.replicas = 2}};
  auto net = dist::torch_module(strategy, [] { return torch::nn::BatchNorm1d{3}; });
  torch::nn::BatchNorm1d other{3};
  other->weight.data().fill_(5.0 + static_cast<double>(of_workers::my_rank()));
  other->running_var.fill_(2.0 + static_cast<double>(of_workers::my_rank()));
  net.assign(strategy.scope(), other);
  for (std::size_t replica = 0; replica < 2; ++replica) {
    const auto& ours = net.on(strategy.scope(), replica);
    CHECK(ours->weight[2].item<float>() == 5);
    CHECK(ours->running_var[2].item<float>() == 2);
  }
}
