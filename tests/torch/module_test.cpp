#include <dist/torch/module.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/embedding.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>
#include <torch/serialize.h>

#include <dist/checkpoint/checkpoint.hpp>
#include <dist/data/batch.hpp>
#include <dist/data/tensor_slices.hpp>
#include <dist/nn/loss_scale.hpp>
#include <dist/nn/losses/regression.hpp>
#include <dist/nn/losses/sparse_categorical_crossentropy.hpp>
#include <dist/nn/optimizer.hpp>
#include <dist/nn/optimizers/adam.hpp>
#include <dist/nn/optimizers/lamb.hpp>
#include <dist/nn/optimizers/options.hpp>
#include <dist/nn/optimizers/sgd.hpp>
#include <dist/nn/optimizers/with.hpp>
#include <dist/nn/overlapped_all_reduce.hpp>
#include <dist/strategy/default.hpp>
#include <dist/strategy/mirrored.hpp>
#include <dist/train/model.hpp>

#undef CHECK  // of libtorch's log
#include <doctest/doctest.h>
#include <support/temporary_folder.hpp>
#include <support/throw_cause_of.hpp>
#include <support/what_throws.hpp>

#include "convolution_net.hpp"
#include "train/callbacks/small_model.hpp"

namespace nn = dist::nn;
using Mirrored = dist::Mirrored<dist::ThreadAllReduce>;
using convolution::difference;
using convolution::losses_of;
using convolution::losses_of_libtorch;
using convolution::make_net;
using convolution::step_of;

namespace {

constexpr std::uint64_t seed = 7;
const nn::SGD descent{.learning_rate = 0.05F};
const nn::Adam adam{.learning_rate = 0.02F, .epsilon = 1e-8F};

/// Creates a net from the seed first, and then nets with other weights, which must be overwritten.
struct MakeNets {
  std::uint64_t next = seed;
  convolution::Net operator()() { return make_net(next++); }
};

std::vector<double> by_descent() { return losses_of_libtorch<torch::optim::SGD>(seed, torch::optim::SGDOptions{0.05}); }
std::vector<double> by_adam() { return losses_of_libtorch<torch::optim::Adam>(seed, torch::optim::AdamOptions{0.02}); }

/// Parameters of ones, of which some are used only by the loss of replica 0, or by none.
struct PartlyUsedImpl : torch::nn::Module {
  PartlyUsedImpl() {
    for (const char* const name : {"everywhere", "of_first", "of_zero", "never", "frozen"})
      register_parameter(name, torch::ones({4}));
  }
  torch::Tensor loss(std::size_t replica) {
    const auto ours = named_parameters();
    const torch::Tensor all_values = (ours["everywhere"].pow(2) + 0 * ours["of_zero"] + ours["frozen"]).sum();
    return replica == 0 ? all_values + 3 * ours["of_first"].pow(2).sum() : all_values;
  }
};
TORCH_MODULE(PartlyUsed);

template <class S, class Net>
bool copies_are_equal(S& strategy, Net& net) {
  const auto first = net.parameters().component(strategy.scope(), 0);
  bool equal = true;
  for (std::size_t replica = 1; replica < strategy.num_local_replicas(); ++replica) {
    const auto other = net.parameters().component(strategy.scope(), replica);
    equal = equal && std::equal(first.begin(), first.end(), other.begin());
  }
  return equal;
}

template <class S>
void check_losses(S& strategy) {
  {
    auto net = dist::torch_module(strategy, MakeNets{});
    nn::Optimizer optimizer{strategy, net, descent};
    CHECK(difference(losses_of(strategy, net, optimizer), by_descent()) < 1e-5);
    CHECK(copies_are_equal(strategy, net));
  }
  auto net = dist::torch_module(strategy, MakeNets{});
  nn::Optimizer optimizer{strategy, net, adam};
  CHECK(difference(losses_of(strategy, net, optimizer), by_adam()) < 1e-5);
  CHECK(copies_are_equal(strategy, net));
}

template <class Fn>
std::string refusal(Fn&& fn) {
  return support::what_throws<dist::InvalidArgument>([&] { support::throw_cause_of(fn); });
}
bool has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("losses agree with libtorch in one process, with the library's optimizers") {
  const std::vector<double> losses = by_adam();
  REQUIRE(losses.back() < 0.7 * losses.front());  // the network learns
  dist::Default alone;
  check_losses(alone);
  for (const std::size_t replicas : {1U, 2U, 4U}) {
    CAPTURE(replicas);
    Mirrored strategy{replicas};
    check_losses(strategy);
  }
}

namespace {

/// libtorch's AdamW with two parameter groups, which differ in learning rate and weight decay.
std::unique_ptr<torch::optim::Optimizer> grouped_adam_w(const convolution::Net& net) {
  using torch::optim::AdamWOptions;
  std::vector<torch::optim::OptimizerParamGroup> groups;
  groups.emplace_back(net->conv1->parameters());
  groups.emplace_back(net->dense->parameters(), std::make_unique<AdamWOptions>(AdamWOptions{0.002}.weight_decay(0.3)));
  return std::make_unique<torch::optim::AdamW>(groups, AdamWOptions{0.02});
}

}  // namespace

TEST_CASE("optimizers of libtorch with parameter groups apply reduced gradients") {
  std::vector<double> expected;
  convolution::Net alone = make_net(seed);
  const auto of_alone = grouped_adam_w(alone);
  for (std::size_t step = 0; step < convolution::steps; ++step) {
    of_alone->zero_grad();
    const convolution::Batch batch{step};
    const torch::Tensor loss =
        sum_of_losses(alone, batch, 0, convolution::global_batch) / double{convolution::global_batch};
    loss.backward();
    of_alone->step();
    expected.push_back(loss.item<double>());
  }
  for (const std::size_t replicas : {1U, 2U, 4U}) {
    CAPTURE(replicas);
    Mirrored strategy{replicas};
    auto net = dist::torch_module(strategy, MakeNets{});
    std::vector<std::unique_ptr<torch::optim::Optimizer>> optimizers;
    for (std::size_t replica = 0; replica < replicas; ++replica)
      optimizers.push_back(grouped_adam_w(net.on(strategy.scope(), replica)));
    std::vector<double> losses;
    for (std::size_t step = 0; step < convolution::steps; ++step)
      losses.push_back(step_of(strategy, net, step, [&](auto& replica, const torch::Tensor& loss) {
        net.backward(replica, loss);
        // [optim]
        replica.all_reduce(dist::sum, net.take_gradients(replica));  // in place
        optimizers[replica.local_index()]->step();
        // [/optim]
      }));
    CHECK(difference(losses, expected) < 1e-5);
    CHECK(copies_are_equal(strategy, net));
  }
}

TEST_CASE("parameters and gradients of modules are in the strategy's memory, with libtorch's names") {
  Mirrored strategy{2};
  auto net = dist::torch_module(strategy, MakeNets{});
  std::vector<std::string> names;
  for (const nn::Parameter& parameter : net.layout()) names.push_back(parameter.name());
  CHECK(names == std::vector<std::string>{"conv1.weight", "conv1.bias", "dense.weight", "dense.bias"});
  CHECK(net.layout()[2].shape == dist::Shape{5, 48});
  CHECK(net.layout()[1].offset == 32);  // 27 weights, up to the next cache line
  CHECK(net.gradients().size() == 32 + 16 + 240 + 16);

  strategy.run([&](auto& replica) {
    auto& module = net.on(replica);
    const std::size_t offset = net.layout()[2].offset;
    CHECK(module->dense->weight.template data_ptr<float>() == net.parameters().component(replica).data() + offset);
    net.backward(replica, convolution::sum_of_losses(module, convolution::Batch{0}, 0, 4));
    CHECK(module->dense->weight.grad().template data_ptr<float>() ==
          net.gradients().component(replica).data() + offset);
  });
  // All start with the first module's values.
  CHECK(copies_are_equal(strategy, net));
  const convolution::Net first = make_net(seed);
  CHECK(net.parameter(strategy.scope(), "dense.bias")[3] == first->dense->bias[3].item<float>());
  net.assign_parameter(strategy.scope(), "dense.bias", 0.25F);
  CHECK(net.on(strategy.scope(), 1)->dense->bias[4].item<float>() == 0.25F);

  nn::Optimizer optimizer{strategy, net, adam};
  step_of(strategy, net, 0, [&](auto& replica, const torch::Tensor& loss) {
    net.backward(replica, loss);
    optimizer.apply_gradients(replica);
  });
  CHECK(optimizer.slot(strategy.scope(), "momentum", "conv1.weight").shape() == dist::Shape{3, 1, 3, 3});
}

TEST_CASE("gradients add up until they are applied, as in libtorch, and unused parameters have gradient zero") {
  dist::Default strategy;
  auto net = dist::torch_module(strategy, MakeNets{});
  nn::Optimizer optimizer{strategy, net, descent};
  strategy.run([&](auto& replica) {
    auto& module = net.on(replica);
    const auto gradients = std::as_const(net).gradients().component(replica);
    const auto compute = [&] {
      net.backward(replica, convolution::sum_of_losses(module, convolution::Batch{0}, 0, 4));
    };
    const auto is = [&](const std::vector<float>& once, float times) {
      return std::equal(once.begin(), once.end(), gradients.begin(),
                        [&](float one, float now) { return now == times * one; });
    };
    compute();
    const std::vector<float> once{gradients.begin(), gradients.end()};
    CHECK(once[0] != 0);
    compute();
    CHECK(is(once, 2));
    net.zero_grad(replica);
    CHECK(is(once, 0));
    compute();
    CHECK(is(once, 1));
    module->zero_grad();  // libtorch's own
    compute();
    CHECK(is(once, 1));

    optimizer.apply_gradients(replica);
    const torch::Tensor of_dense = module->dense->forward(torch::ones({1, 48})).sum();
    net.backward(replica, of_dense);
    CHECK(gradients[0] == 0);
    CHECK(gradients[net.layout()[3].offset] == 1);
  });
}

TEST_CASE("gradients are applied once, and only after the module's backward") {
  dist::Default strategy;
  auto net = dist::torch_module(strategy, MakeNets{});
  nn::Optimizer optimizer{strategy, net, descent};
  const auto refused = [&](auto&& step) { return refusal([&] { strategy.run(step); }); };
  const auto compute = [&](auto& replica) {
    net.backward(replica, convolution::sum_of_losses(net.on(replica), convolution::Batch{0}, 0, 4));
  };
  CHECK(has(refused([&](auto& replica) { optimizer.apply_gradients(replica); }), "has not called backward yet"));
  CHECK(has(refused([&](auto& replica) {
              convolution::sum_of_losses(net.on(replica), convolution::Batch{0}, 0, 4).backward();
              optimizer.apply_gradients(replica);
            }),
            "Call net.backward(replica, loss) before each apply_gradients, not loss.backward()"));
  CHECK(has(refused([&](auto& replica) {
              compute(replica);
              optimizer.apply_gradients(replica);
              optimizer.apply_gradients(replica);
            }),
            "has already applied the gradients of its last backward"));
  CHECK(has(refused([&](auto& replica) {
              compute(replica);
              net.zero_grad(replica);
              optimizer.apply_gradients(replica);
            }),
            "has already applied the gradients of its last backward"));
  strategy.run([&](auto& replica) {
    compute(replica);
    optimizer.apply_gradients(replica);
  });
  CHECK(optimizer.iterations(strategy.scope()) == 2);

  // Reduced gradients are sums over the replicas.
  CHECK(has(refused([&](auto& replica) {
              compute(replica);
              net.backward(replica, convolution::sum_of_losses(net.on(replica), convolution::Batch{0}, 0, 4),
                           [](dist::IndexRange) {});
              compute(replica);
            }),
            "backward was called before reduced gradients were applied"));
}

TEST_CASE("gradients of a step that a loss scale skips are discarded") {
  dist::Default strategy;
  auto net = dist::torch_module(strategy, MakeNets{});
  nn::LossScale scale{strategy, {.initial = 1}};
  nn::Optimizer optimizer{strategy, net, descent};
  strategy.run([&](auto& replica) {
    const auto compute = [&](float factor) {
      net.backward(replica,
                   convolution::sum_of_losses(net.on(replica), convolution::Batch{0}, 0, 4) * torch::tensor(factor));
    };
    compute(INFINITY);
    CHECK(!scale.remove(replica, net));
    compute(1);
    CHECK(scale.remove(replica, net));
    CHECK(std::isfinite(std::as_const(net).gradients().component(replica)[0]));
    optimizer.apply_gradients(replica);
  });
}

TEST_CASE("parameters without a gradient on any replica do not change, as in libtorch") {
  constexpr std::size_t replicas = 2, steps = 3;
  const auto freeze = [](PartlyUsed& module) { module->named_parameters()["frozen"].set_requires_grad(false); };
  PartlyUsed expected;
  freeze(expected);
  torch::optim::AdamW alone{expected->parameters(), torch::optim::AdamWOptions{0.05}.weight_decay(0.1)};
  for (std::size_t step = 0; step < steps; ++step) {
    alone.zero_grad();
    (expected->loss(0) + expected->loss(1)).backward();
    alone.step();
  }
  // The right values by hand: a parameter without a gradient stays 1, and one with gradient 0 decays by 0.5 % per step.
  REQUIRE(expected->named_parameters()["never"][0].item<float>() == 1);
  REQUIRE(expected->named_parameters()["of_zero"][0].item<float>() == doctest::Approx(0.995 * 0.995 * 0.995));

  Mirrored strategy{replicas};
  const auto check = [&](auto&& train) {
    auto net = dist::torch_module(strategy, [] { return PartlyUsed{}; });
    for (std::size_t replica = 0; replica < replicas; ++replica) freeze(net.on(strategy.scope(), replica));
    train(net);
    for (const auto& named : expected->named_parameters())
      for (std::size_t replica = 0; replica < replicas; ++replica) {
        CAPTURE(named.key());
        const torch::Tensor ours = net.on(strategy.scope(), replica)->named_parameters()[named.key()];
        CHECK(torch::allclose(ours, named.value(), 1e-5, 1e-6));
      }
    CHECK(copies_are_equal(strategy, net));
  };
  const nn::AdamW adam_w{.learning_rate = 0.05F, .weight_decay = 0.1F, .epsilon = 1e-8F};
  const auto loss_of = [](auto& net, auto& replica) { return net.on(replica)->loss(replica.replica_id().index()); };
  check([&](auto& net) {
    nn::Optimizer optimizer{strategy, net, adam_w};
    for (std::size_t step = 0; step < steps; ++step)
      strategy.run([&](auto& replica) {
        net.backward(replica, loss_of(net, replica));
        optimizer.apply_gradients(replica);
      });
    CHECK(optimizer.slot(strategy.scope(), "velocity", "never")[0] == 0);
  });
  check([&](auto& net) {  // reduced early, where a replica does not know which parameters the others used
    nn::Optimizer optimizer{strategy, net, adam_w};
    nn::OverlappedAllReduce overlap{strategy, net, {.bytes_per_pack = 64}};
    for (std::size_t step = 0; step < steps; ++step)
      strategy.run([&](auto& replica) {
        net.backward(replica, loss_of(net, replica), overlap.on_ready(replica));
        overlap.wait(replica);
        optimizer.apply_gradients(replica, nn::skip_aggregation);
      });
  });
  check([&](auto& net) {  // in two calls, where only one uses each parameter
    nn::Optimizer optimizer{strategy, net, nn::With{adam_w, nn::AccumulateGradients{2}}};
    for (std::size_t step = 0; step < 2 * steps; ++step)
      strategy.run([&](auto& replica) {
        const std::size_t part = (replica.replica_id().index() + step) % 2;
        net.backward(replica, torch::Tensor{net.on(replica)->loss(part)});
        optimizer.apply_gradients(replica);
      });
  });
  auto net = dist::torch_module(strategy, [] { return PartlyUsed{}; });
  nn::Optimizer optimizer{strategy, net, nn::With{nn::Lamb{}, nn::GlobalClipNorm{1.0F}, nn::WeightDecay{0.1F}}};
  strategy.run([&](auto& replica) {
    net.backward(replica, loss_of(net, replica));
    optimizer.apply_gradients(replica);
  });
  CHECK(net.parameter(strategy.scope(), "never")[0] == 1);
  CHECK(net.parameter(strategy.scope(), "of_first")[0] < 1);
}

TEST_CASE("modules whose tensors have left the strategy's memory are rejected, and assign copies a loaded one") {
  const support::TemporaryFolder folder;
  const std::string path = folder.path("net.pt");
  const convolution::Net saved = make_net(99);
  torch::save(saved, path);
  Mirrored strategy{2};
  const auto step = [&](auto& net) {
    return refusal([&] { strategy.run([&](auto& replica) { static_cast<void>(net.on(replica)); }); });
  };
  const char* const refused = "Tensor 'conv1.weight' of a torch_module is outside the strategy's memory";
  {
    auto net = dist::torch_module(strategy, MakeNets{});
    torch::load(net.on(strategy.scope(), 1), path);
    CHECK(has(step(net), refused));
  }
  {
    auto net = dist::torch_module(strategy, MakeNets{});
    auto& module = net.on(strategy.scope(), 0);
    strategy.run([&](auto& replica) {
      const torch::Tensor loss = convolution::sum_of_losses(net.on(replica), convolution::Batch{0}, 0, 4);
      if (replica.replica_id().index() == 0) {
        module->to(torch::kFloat64);
        module->to(torch::kFloat32);
        CHECK(has(refusal([&] { net.backward(replica, loss); }), refused));
      }
    });
  }
  auto net = dist::torch_module(strategy, MakeNets{});
  convolution::Net loaded = make_net(3);
  torch::load(loaded, path);
  net.assign(strategy.scope(), loaded);
  strategy.run([&](auto& replica) { static_cast<void>(net.on(replica)); });
  for (std::size_t replica = 0; replica < 2; ++replica)
    CHECK(torch::equal(net.on(strategy.scope(), replica)->dense->weight, saved->dense->weight));

  // Other shapes are rejected, and buffers are assigned.
  const auto make = [](std::int64_t size) {
    return [size] { return torch::nn::Sequential{torch::nn::Linear{2, size}, torch::nn::BatchNorm1d{size}}; };
  };
  auto normalised = dist::torch_module(strategy, make(3));
  CHECK(has(refusal([&] { normalised.assign(strategy.scope(), make(4)()); }), "A module has no '0.weight' of shape"));
  torch::nn::Sequential other = make(3)();
  other->named_buffers()["1.running_mean"].fill_(0.5);
  other->named_buffers()["1.num_batches_tracked"].fill_(7);
  normalised.assign(strategy.scope(), other);
  const auto buffers = normalised.on(strategy.scope(), 1)->named_buffers();
  CHECK(buffers["1.running_mean"][2].item<float>() == 0.5F);
  CHECK(buffers["1.num_batches_tracked"].item<std::int64_t>() == 7);
  buffers["1.running_mean"].set_data(torch::zeros({3}));
  CHECK(has(step(normalised), "Tensor '1.running_mean' of a torch_module is outside the strategy's memory"));

  auto frozen = dist::torch_module(strategy, [] {
    torch::nn::Linear linear{2, 2};
    linear->bias.set_requires_grad(false);
    return linear;
  });
  frozen.on(strategy.scope(), 0)->bias.set_requires_grad(true);
  CHECK(has(step(frozen), "Parameter 'bias' of a torch_module requires a gradient, but is not trained"));
}

TEST_CASE("parts of the gradients are ready from the last parameter to the first, also unused ones") {
  dist::Default strategy;
  auto net = dist::torch_module(strategy, MakeNets{});
  strategy.run([&](auto& replica) {
    for (const bool all_values : {true, false}) {
      std::size_t end = net.gradients().size(), parts = 0;
      const auto ready = [&](dist::IndexRange part) {
        CHECK(part.end == end);
        end = part.begin;
        ++parts;
      };
      auto& module = net.on(replica);
      if (all_values)
        net.backward(replica, convolution::sum_of_losses(module, convolution::Batch{0}, 0, 4), ready);
      else
        net.backward(replica, torch::Tensor{module->conv1->weight.sum()}, ready);
      net.zero_grad(replica);
      CHECK(end == 0);
      CHECK(parts >= (all_values ? 2 : 1));
    }
  });
}

TEST_CASE("gradients are summed during the backward pass") {
  Mirrored strategy{2};
  auto net = dist::torch_module(strategy, MakeNets{});
  nn::OverlappedAllReduce overlap{strategy, net, {.bytes_per_pack = 64}};
  CHECK(overlap.buckets().size() == 2);
  nn::Optimizer optimizer{strategy, net, descent};
  std::vector<double> losses;
  for (std::size_t step = 0; step < convolution::steps; ++step)
    losses.push_back(step_of(strategy, net, step, [&](auto& replica, const torch::Tensor& loss) {
      net.backward(replica, loss, overlap.on_ready(replica));
      overlap.wait(replica);
      optimizer.apply_gradients(replica, nn::skip_aggregation);
    }));
  CHECK(difference(losses, by_descent()) < 1e-5);
}

TEST_CASE("training continues from a checkpoint with another number of replicas") {
  const support::TemporaryFolder folder;
  const std::vector<double> expected = by_adam();
  constexpr std::size_t half = convolution::steps / 2;
  {
    Mirrored strategy{2};
    auto net = dist::torch_module(strategy, MakeNets{});
    nn::Optimizer optimizer{strategy, net, adam};
    losses_of(strategy, net, optimizer, 0, half);
    dist::Checkpoint checkpoint{strategy};
    checkpoint.add("net", net).add("optimizer", optimizer).save(folder.path("half"));
  }
  Mirrored strategy{3};
  auto net = dist::torch_module(strategy, MakeNets{99});
  nn::Optimizer optimizer{strategy, net, adam};
  dist::Checkpoint checkpoint{strategy};
  checkpoint.add("net", net).add("optimizer", optimizer).restore(folder.path("half"));
  const std::vector<double> losses = losses_of(strategy, net, optimizer, half);
  CHECK(difference(losses, {expected.begin() + half, expected.end()}) < 1e-5);
}

TEST_CASE("buffers and frozen parameters are saved as the mean over the replicas") {
  Mirrored strategy{2};
  const auto make = [] {
    torch::nn::Linear frozen{2, 2};
    frozen->weight.set_requires_grad(false);
    return torch::nn::Sequential{frozen, torch::nn::BatchNorm1d{2}};
  };
  auto net = dist::torch_module(strategy, make);
  std::vector<std::string> keys;
  dist::walk(net, [&](std::string_view key, auto&) { keys.emplace_back(key); });
  CHECK(keys == std::vector<std::string>{"0.bias", "1.weight", "1.bias", "0.weight", "1.running_mean", "1.running_var",
                                         "1.num_batches_tracked"});
  net.assign_parameter(strategy.scope(), "0.bias", 0.0F);

  // A running mean is 0.9 of its old value plus 0.1 of the mean of a batch.
  const auto weight = net.on(strategy.scope(), 0)->parameters()[0].clone();
  strategy.run([&](auto& replica) {
    const float value = replica.replica_id().index() == 0 ? 1.0F : 3.0F;
    const torch::Tensor y = net.on(replica)->forward(torch::full({4, 2}, value));
    net.backward(replica, torch::Tensor{y.sum()});
  });
  dist::Tensor<float> means;
  dist::Tensor<std::int64_t> counts;
  dist::walk(net, [&](std::string_view key, auto& leaf) {
    if constexpr (std::is_same_v<typename decltype(leaf.whole(strategy.scope()))::Element, float>) {
      if (key != "1.running_mean") return;
      means = leaf.whole(strategy.scope());
      leaf.restore(strategy.scope(), means);
    } else {
      counts = leaf.whole(strategy.scope());
      leaf.restore(strategy.scope(), std::int64_t{41});
    }
  });
  for (std::size_t i = 0; i < 2; ++i) {
    // After a restore every replica continues from the mean.
    for (std::size_t replica = 0; replica < 2; ++replica)
      CHECK(net.on(strategy.scope(), replica)
                ->named_buffers()["1.running_mean"][static_cast<std::int64_t>(i)]
                .item<float>() == means[i]);
    CHECK(means[i] == doctest::Approx(0.1 * 2 * weight[static_cast<std::int64_t>(i)].sum().item<float>()));
  }
  CHECK(counts[0] == 1);
  CHECK(net.on(strategy.scope(), 1)->named_buffers()["1.num_batches_tracked"].item<std::int64_t>() == 41);
}

TEST_CASE("a Model fits and evaluates a module with the library's losses, in the right modes") {
  const auto make = [] {
    torch::manual_seed(1);
    return torch::nn::Sequential{torch::nn::Linear{4, 8}, torch::nn::Tanh{}, torch::nn::Linear{8, 3}};
  };
  // The class of an example is the index of the largest of its first three numbers.
  constexpr std::size_t rows = 40;
  dist::Tensor<float> x{{rows, 4}};
  dist::Tensor<std::int64_t> y{{rows}};
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::sin(static_cast<float>(i * i));
  for (std::size_t row = 0; row < rows; ++row)
    y[row] = std::max_element(x.data() + 4 * row, x.data() + 4 * row + 3) - (x.data() + 4 * row);

  const auto train = [&](auto& strategy) {
    auto net = dist::torch_module(strategy, make);
    nn::Model model{strategy, net, nn::Adam{.learning_rate = 0.05F}, nn::SparseCategoricalCrossentropy{},
                    nn::SparseCategoricalAccuracy{}};
    model.fit(x, y, {.epochs = 20, .verbose = 0, .batch_size = 8});
    CHECK(net.on(strategy.scope(), 0)->is_training());
    const auto logs = model.evaluate(x, y, {.verbose = 0});
    CHECK(logs["accuracy"] > 0.9);
    CHECK(!net.on(strategy.scope(), 0)->is_training());
    return logs["loss"];
  };
  dist::Default alone;
  Mirrored strategy{4};
  const double expected = train(alone);
  CHECK(train(strategy) == doctest::Approx(expected).epsilon(1e-4));
}

TEST_CASE("a replica without examples has zero gradients and loss zero") {
  dist::Default strategy;
  auto net = dist::torch_module(strategy, MakeNets{});
  strategy.run([&](auto& replica) {
    const dist::Tensor<float> none{dist::Shape{0, 36}};
    const dist::Tensor<std::int64_t> labels{dist::Shape{0}};
    const auto outputs = net.forward(replica, none);
    CHECK(outputs.values.rows() == 0);
    net.gradients().component(replica)[0] = 1;
    net.backward(replica, nn::sparse_categorical_crossentropy(replica, outputs, labels, 4));
    CHECK(net.gradients().component(replica)[0] == 0);
  });
}

TEST_CASE("invalid modules are rejected") {
  Mirrored strategy{2};
  CHECK(has(refusal([&] {
              auto net = dist::torch_module(strategy, [] {
                torch::nn::Linear one{2, 2};
                one->to(torch::kFloat64);
                return one;
              });
            }),
            "Parameter 'weight' of a module of libtorch cannot be stored in a strategy's memory"));
  CHECK(has(refusal([&] { auto net = dist::torch_module(strategy, [] { return torch::nn::Tanh{}; }); }),
            "nothing to train"));
  std::int64_t size = 2;
  CHECK(has(refusal([&] { auto net = dist::torch_module(strategy, [&] {
                            return torch::nn::Linear{size++, 2};
                          }); }),
            "makes modules that differ (replica 0 has parameter 'weight' of shape [2, 2], replica 1 has parameter "
            "'weight' of "
            "shape [2, 3])"));
  torch::nn::Linear same{2, 2};
  CHECK(has(refusal([&] { auto net = dist::torch_module(strategy, [&] { return same; }); }),
            "returns the same module for several replicas"));

  auto table = dist::torch_module(strategy, [] {
    return torch::nn::Embedding{torch::nn::EmbeddingOptions{4, 2}.sparse(true)};
  });
  CHECK(has(refusal([&] {
              strategy.run([&](auto& replica) {
                const torch::Tensor rows = torch::zeros({3}, torch::kInt64);
                table.backward(replica, torch::Tensor{table.on(replica)->forward(rows).sum()});
              });
            }),
            "The gradient of parameter 'weight' is sparse"));
  auto net = dist::torch_module(strategy, MakeNets{});
  CHECK(has(refusal([&] { strategy.run([&](auto& replica) { net.backward(replica, 1); }); }),
            "backward was called before its forward"));
  CHECK_THROWS_AS(support::throw_cause_of([&] {
                    dist::Default other;
                    other.run([&](auto& replica) { static_cast<void>(net.on(replica)); });
                  }),
                  dist::WrongStrategy);
}
