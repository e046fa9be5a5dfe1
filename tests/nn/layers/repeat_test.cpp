#include <dist/nn/layers/repeat.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include <dist/core/index_range.hpp>
#include <dist/core/tensor.hpp>
#include <dist/nn/activations/smooth.hpp>
#include <dist/nn/chain.hpp>
#include <dist/nn/layers/activate.hpp>
#include <dist/nn/layers/add.hpp>
#include <dist/nn/layers/batch_normalization.hpp>
#include <dist/nn/layers/dense.hpp>
#include <dist/nn/layers/dropout.hpp>
#include <dist/nn/layers/embedding.hpp>
#include <dist/nn/layers/group_normalization.hpp>
#include <dist/nn/layers/multi_head_attention.hpp>
#include <dist/nn/layers/named.hpp>
#include <dist/nn/layers/recomputed.hpp>
#include <dist/nn/layers/unembed.hpp>
#include <dist/nn/network.hpp>
#include <dist/nn/onednn/backend.hpp>
#include <dist/nn/optimizer.hpp>
#include <dist/nn/optimizers/adam.hpp>
#include <dist/nn/reference/backend.hpp>
#include <dist/nn/sequential.hpp>
#include <dist/strategy/default.hpp>
#include <dist/strategy/mirrored.hpp>

#include <doctest/doctest.h>

#include "nn/run_network.hpp"
#include "nn/steady_steps.hpp"

namespace nn = dist::nn;

namespace {

constexpr std::size_t length = 4, width = 6;

/// Attention, state, and random numbers. `Layers` depends on the input.
struct Block {
  template <class In>
  using Layers = nn::Sequential<
      nn::Residual<nn::Sequential<nn::LayerNormalization<>, nn::MultiHeadAttention<2, 3, nn::AttendToPast>>>,
      nn::Residual<nn::Sequential<nn::BatchNormalization<nn::SynchronizedStatistics>, nn::Dense<8, nn::Gelu>,
                                  nn::Dropout<20>, nn::Dense<In::last_extent>>>>;
};
using Products = nn::Sequential<nn::Dense<5, nn::Gelu>, nn::Dense<width>>;
/// Ends in an activation, whose gradient some back ends compute with the next product.
using Activated = nn::Dense<width, nn::Tanh>;

template <class... Blocks>
using Net = nn::Sequential<nn::Input<length, width>, nn::Dense<width>, Blocks..., nn::Dense<2>>;
/// The first layers are blocks, so the first block has no input gradient.
template <class... Blocks>
using First = nn::Sequential<nn::Input<length, width>, Blocks..., nn::Dense<2>>;

/// Trains for some steps. Returns outputs, parameters, gradients and state of all replicas.
template <class Model, class Backend>
std::vector<float> trained(auto& strategy) {
  nn::Network<Model, Backend> net{strategy, 3};
  nn::Optimizer optimizer{strategy, net, nn::Adam{.learning_rate = 0.05F}};
  std::vector<std::vector<float>> of_replica(strategy.num_local_replicas());
  for (const std::size_t rows : {3U, 2U, 3U, 0U, 1U})
    strategy.run([&](auto& replica) {
      const std::size_t local = replica.local_index();
      const std::size_t mine = local == 1 ? 0 : rows;  // one replica has no examples
      const auto values = dist_test::converted<float>(dist_test::numbers(mine * length * width, rows + local));
      const auto x = dist::TensorView<const float>{values.data(), {mine, length, width}};
      auto& all = of_replica[local];
      const auto add = [&](const auto& elements) { all.insert(all.end(), elements.begin(), elements.end()); };
      add(net.forward(replica, x, nn::inference).values.elements());
      const auto y = net.forward(replica, x);
      add(y.values.elements());
      for (std::size_t i = 0; i < y.values.size(); ++i) y.gradient[i] = y.values[i] - static_cast<float>(i % 3);
      net.backward(replica, 0);
      add(std::as_const(net).gradients().component(replica));
      optimizer.apply_gradients(replica);
      add(net.parameters().component(replica));
      if constexpr (Model::state_count > 0) add(net.state().component(replica));
    });
  std::vector<float> all;
  for (const auto& mine : of_replica) all.insert(all.end(), mine.begin(), mine.end());
  return all;
}

/// Compares the bits of blocks and of the same blocks one by one.
template <class Blocks, class Pack>
void check_equal() {
  CHECK(Blocks::padded_count == Pack::padded_count);
  CHECK(Blocks::padded_state_count == Pack::padded_state_count);
  const auto check_on = [](auto& strategy) {
    CAPTURE(strategy.num_replicas_in_sync());
    CHECK(trained<Blocks, nn::Reference>(strategy) == trained<Pack, nn::Reference>(strategy));
    CHECK(trained<Blocks, nn::OneDnn>(strategy) == trained<Pack, nn::OneDnn>(strategy));
  };
  dist::Default one;
  check_on(one);
  for (const std::size_t replicas : {2U, 3U}) {
    dist::Mirrored<dist::ThreadAllReduce> strategy{replicas};
    check_on(strategy);
  }
}

/// Returns how often the first step of a network allocates memory.
template <class Model>
std::size_t allocations_of() {
  nn::Workspace<Model, nn::Reference, float> workspace;
  const auto parameters = dist_test::converted<float>(dist_test::numbers(Model::padded_count, 1));
  std::vector<float> gradients(Model::padded_count);
  const dist::Tensor<float> x{Model::InputShape::shape().stacked(2)};
  const std::size_t before = allocations;
  const auto y = workspace.forward(parameters, x.view());
  for (float& element : y.gradient.elements()) element = 1;
  workspace.backward(parameters, gradients);
  return allocations - before;
}

std::vector<std::string> names_of(std::span<const nn::Parameter> layout) {
  std::vector<std::string> names;
  for (const nn::Parameter& parameter : layout) names.push_back(parameter.name());
  return names;
}
using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("Repeat computes the bits of blocks written one by one, with their state, on one and several replicas") {
  check_equal<Net<nn::Repeat<3, Block>>, Net<Block, Block, Block>>();
  check_equal<First<nn::Repeat<3, Products>>, First<Products, Products, Products>>();
}

TEST_CASE("Repeat of a block that ends in an activation computes the same up to rounding") {
  using Blocks = Net<nn::Repeat<2, Activated>>;
  using Pack = Net<Activated, Activated>;
  dist::Default strategy;
  CHECK(trained<Blocks, nn::Reference>(strategy) == trained<Pack, nn::Reference>(strategy));
  const auto computed = trained<Blocks, nn::OneDnn>(strategy);
  const auto expected = trained<Pack, nn::OneDnn>(strategy);
  CHECK(dist_test::difference({computed.begin(), computed.end()}, {expected.begin(), expected.end()}) < 1e-6);
}

TEST_CASE("Repeat inside a branch or another Repeat, of one block, and without parameters computes the same") {
  dist::Mirrored<dist::ThreadAllReduce> strategy{2};
  const auto check = [&]<class Blocks, class Pack>(std::type_identity<Blocks>, std::type_identity<Pack>) {
    CHECK(trained<Blocks, nn::Reference>(strategy) == trained<Pack, nn::Reference>(strategy));
  };
  check(std::type_identity<Net<nn::Repeat<2, nn::Repeat<2, Products>>, nn::Repeat<1, Block>>>{},
        std::type_identity<Net<Products, Products, Products, Products, Block>>{});
  check(std::type_identity<Net<nn::Residual<nn::Repeat<2, Block>>, nn::Repeat<2, nn::ReLU>>>{},
        std::type_identity<Net<nn::Residual<nn::Sequential<Block, Block>>, nn::ReLU, nn::ReLU>>{});
}

TEST_CASE("parameters and state of a Repeat have the number of the block in their names") {
  using Normalized = nn::Sequential<nn::Dense<width>, nn::Dense<width, nn::Linear, nn::Zeros, nn::NoBias>,
                                    nn::Named<"norm", nn::BatchNormalization<>>>;
  using Model = nn::Sequential<nn::Input<width>, nn::Dense<width>, nn::Repeat<2, Normalized>,
                               nn::Named<"blocks", nn::Repeat<11, nn::Dense<width>>>, nn::Repeat<1, nn::Dense<width>>>;
  const Names names = names_of(Model::parameters);
  CHECK(Names(names.begin(), names.begin() + 14) ==
        Names{"dense/kernel", "dense/bias", "repeat/0/dense/kernel", "repeat/0/dense/bias", "repeat/0/dense_1/kernel",
              "repeat/0/norm/gamma", "repeat/0/norm/beta", "repeat/1/dense/kernel", "repeat/1/dense/bias",
              "repeat/1/dense_1/kernel", "repeat/1/norm/gamma", "repeat/1/norm/beta", "blocks/0/dense/kernel",
              "blocks/0/dense/bias"});
  CHECK(names[33] == "blocks/10/dense/bias");
  CHECK(names[34] == "repeat_1/0/dense/kernel");
  CHECK(names_of(Model::state) == Names{"repeat/0/norm/moving_mean", "repeat/0/norm/moving_variance",
                                        "repeat/1/norm/moving_mean", "repeat/1/norm/moving_variance"});
  using Nested =
      nn::Sequential<nn::Input<width>, nn::Named<"a", nn::Sequential<nn::Repeat<2, nn::Repeat<1, nn::Dense<width>>>>>>;
  CHECK(names_of(Nested::parameters) == Names{"a/repeat/0/repeat/0/dense/kernel", "a/repeat/0/repeat/0/dense/bias",
                                              "a/repeat/1/repeat/0/dense/kernel", "a/repeat/1/repeat/0/dense/bias"});
  dist::Default strategy;
  nn::Network<Model> net{strategy, 1};
  net.assign_parameter(strategy.scope(), "repeat/1/dense/bias", 7.0F);
  strategy.run([&](auto& replica) {
    CHECK(net.template parameter<1, 6>(replica).shape() == dist::Shape{width});
    CHECK(net.template parameter<1, 6>(replica)[0] == 7.0F);
    CHECK(net.template state<1, 3>(replica).shape() == dist::Shape{width});
    CHECK(net.template state<1, 3>(replica)[0] == 1.0F);
  });
}

TEST_CASE("parameters are needed, and gradients are ready, block by block") {
  using Model = Net<nn::Repeat<3, Products>>;
  nn::Workspace<Model, nn::Reference, double> workspace;
  const auto parameters = dist_test::numbers(Model::padded_count, 1);
  const auto batch = dist_test::numbers(2 * length * width, 2);
  std::vector<dist::IndexRange> needed;
  const auto y = workspace.forward(parameters, dist::TensorView<const double>{batch.data(), {2, length, width}},
                                   nn::NoReplica{}, [&](dist::IndexRange elements) { needed.push_back(elements); });
  REQUIRE(needed.size() == 8);
  std::fill_n(y.gradient.data(), y.gradient.size(), 1.0);
  std::vector<double> gradients(Model::padded_count, -99);
  std::vector<dist::IndexRange> ready;
  std::vector<double> firsts;
  workspace.backward(parameters, std::span<double>{gradients}, nn::NoReplica{}, [&](dist::IndexRange elements) {
    ready.push_back(elements);
    firsts.push_back(gradients[elements.begin]);
  });
  REQUIRE(ready.size() == 8);
  std::size_t begin = 0;
  for (std::size_t part = 0; part < 8; ++part) {
    CHECK(needed[part].begin == begin);
    begin = needed[part].end;
    CHECK(ready[7 - part] == needed[part]);
    CHECK(firsts[7 - part] == gradients[needed[part].begin]);
  }
  CHECK(begin == Model::padded_count);
}

TEST_CASE("tables may be tied around a Repeat, and its gradients agree with central differences") {
  dist_test::check_gradients<First<nn::Repeat<2, Products>>, nn::Reference>(2);
  using Tied = nn::Sequential<nn::Input<length>, nn::Named<"wte", nn::Embedding<7, width>>, nn::Repeat<2, Products>,
                              nn::Unembed<"wte">>;
  using Pack = nn::Sequential<nn::Input<length>, nn::Named<"wte", nn::Embedding<7, width>>, Products, Products,
                              nn::Unembed<"wte">>;
  nn::Workspace<Tied, nn::Reference, double> workspace;
  nn::Workspace<Pack, nn::Reference, double> of_pack;
  const auto parameters = dist_test::numbers(Tied::padded_count, 1);
  const std::vector<double> ids{1, 2, 3, 3, 0, 6, 6, 1};
  const auto computed = dist_test::pass(workspace, parameters, ids);
  const auto expected = dist_test::pass(of_pack, parameters, ids);
  CHECK(computed.outputs == expected.outputs);
  CHECK(computed.gradients == expected.gradients);
}

TEST_CASE("a step through a Repeat with a known batch size allocates no memory") {
  dist_test::check_steady_steps<Net<nn::Repeat<3, Products>>>({4, 2, 0, 4});
}

TEST_CASE("the blocks of a Repeat share the memory of gradients between their layers") {
  using Body = nn::Residual<nn::Sequential<nn::Dense<5>, nn::Dense<width>>>;
  using Nested = nn::Repeat<2, Body>;
  // A block has one output, and its first branch two. Written alone, its branches have four gradients, too.
  CHECK(allocations_of<Net<nn::Repeat<4, Body>>>() == allocations_of<Net<nn::Repeat<3, Body>>>() + 3);
  CHECK(allocations_of<Net<Body, Body, Body, Body>>() == allocations_of<Net<Body, Body, Body>>() + 7);
  CHECK(allocations_of<Net<nn::Repeat<3, Nested>>>() == allocations_of<Net<nn::Repeat<2, Nested>>>() + 7);
}

TEST_CASE("Repeat of Recomputed blocks computes the same bits, on one and several replicas") {
  using Attention =
      nn::Residual<nn::Sequential<nn::LayerNormalization<>, nn::MultiHeadAttention<2, 3, nn::AttendToPast>>>;
  using Body = nn::Sequential<Attention, nn::Residual<Products>>;
  check_equal<Net<nn::Recomputed<Body>, nn::Recomputed<Products>>, Net<Body, Products>>();
  check_equal<Net<nn::Repeat<3, nn::Recomputed<Body>>>, Net<Body, Body, Body>>();
  check_equal<First<nn::Repeat<2, nn::Recomputed<Body>>>, First<Body, Body>>();
  dist_test::check_steady_steps<Net<nn::Repeat<3, nn::Recomputed<Products>>>>({4, 2, 0, 4});
}

TEST_CASE("the blocks of a Repeat share the memory of recomputed outputs") {
  using Body = nn::Sequential<nn::Dense<5>, nn::Dense<7>, nn::Dense<width>>;
  // Each block keeps its output only.
  CHECK(allocations_of<Net<nn::Repeat<4, nn::Recomputed<Body>>>>() ==
        allocations_of<Net<nn::Repeat<3, nn::Recomputed<Body>>>>() + 1);
  CHECK(allocations_of<Net<nn::Repeat<4, Body>>>() == allocations_of<Net<nn::Repeat<3, Body>>>() + 3);
}
