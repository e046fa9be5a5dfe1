#include <dist/nn/sequential.hpp>

#include <cstddef>
#include <type_traits>
#include <vector>

#include <dist/nn/layers/add.hpp>
#include <dist/nn/layers/batch_normalization.hpp>
#include <dist/nn/layers/conv2d.hpp>
#include <dist/nn/layers/dense.hpp>
#include <dist/nn/layers/named.hpp>
#include <dist/nn/layers/pool2d.hpp>
#include <dist/nn/layers/views.hpp>
#include <dist/nn/reference/backend.hpp>

#include <doctest/doctest.h>

#include "nn/run_network.hpp"

namespace nn = dist::nn;

namespace {
using Cnn = nn::Sequential<nn::Input<28, 28, 1>, nn::Conv2D<32, 3, nn::Relu>, nn::Flatten, nn::Dense<128, nn::Relu>,
                           nn::Dense<10>>;

/// A block whose layers have the width of its input.
template <std::size_t Times>
struct FeedForward {
  template <class In>
  using Layers = nn::Sequential<nn::Dense<Times * In::last_extent, nn::Relu>, nn::Dense<In::last_extent>>;
};
struct Twice {
  template <class>
  using Layers = nn::Sequential<FeedForward<2>, FeedForward<3>>;
};
struct Widen {
  template <class In>
  using Layers = nn::Dense<In::last_extent + 1>;
};

/// Checks that networks have parameters of the same names, outputs and gradients.
template <class Net, class Written>
void check_equal_networks() {
  REQUIRE(Net::parameters.size() == Written::parameters.size());
  for (std::size_t i = 0; i < Net::parameters.size(); ++i) {
    CHECK(Net::parameters[i].name() == Written::parameters[i].name());
    CHECK(Net::parameters[i].shape == Written::parameters[i].shape);
  }
  const auto parameters = dist_test::numbers(Net::padded_count, 1);
  const auto batch = dist_test::numbers(3 * Net::InputShape::elements, 2);
  nn::Workspace<Net, nn::Reference, double> workspace;
  nn::Workspace<Written, nn::Reference, double> of_written;
  const auto computed = dist_test::pass(workspace, parameters, batch);
  const auto expected = dist_test::pass(of_written, parameters, batch);
  CHECK(computed.outputs == expected.outputs);
  CHECK(computed.gradients == expected.gradients);
}
}  // namespace

TEST_CASE("shapes follow from layer to layer") {
  CHECK(std::is_same_v<Cnn::InputShape, dist::StaticShape<28, 28, 1>>);
  CHECK(std::is_same_v<Cnn::Output<0>, dist::StaticShape<26, 26, 32>>);
  CHECK(std::is_same_v<Cnn::Output<1>, dist::StaticShape<21632>>);
  CHECK(std::is_same_v<Cnn::OutputShape, dist::StaticShape<10>>);
  CHECK(Cnn::layer_count == 4);
  CHECK(std::is_same_v<nn::Sequential<nn::Input<3>>::OutputShape, dist::StaticShape<3>>);
}

TEST_CASE("the guide's CNN has 2,770,634 parameters") {
  CHECK(Cnn::parameter_count == 3 * 3 * 32 + 32 + 26 * 26 * 32 * 128 + 128 + 128 * 10 + 10);
  CHECK(Cnn::parameter_count == 2'770'634);
}

TEST_CASE("parameters are consecutive, each on a cache line") {
  REQUIRE(Cnn::parameters.size() == 6);
  CHECK(Cnn::parameters[0].name() == "conv2d/kernel");
  CHECK(Cnn::parameters[0].shape == dist::Shape{3, 3, 1, 32});
  CHECK(Cnn::parameters[2].name() == "dense/kernel");
  CHECK(Cnn::parameters[2].shape == dist::Shape{21632, 128});
  CHECK(Cnn::parameters[4].name() == "dense_1/kernel");
  CHECK(Cnn::parameters[5].name() == "dense_1/bias");
  std::size_t end = 0;
  for (const nn::Parameter& parameter : Cnn::parameters) {
    CHECK(parameter.offset % 16 == 0);
    CHECK(parameter.offset >= end);
    CHECK(parameter.offset < end + 16);
    end = parameter.offset + parameter.shape.elements();
  }
  CHECK(Cnn::padded_count >= end);
  CHECK(Cnn::padded_count < end + 16);
}

TEST_CASE("layer_parameters returns the parameters of one layer") {
  std::vector<float> all(Cnn::padded_count);
  const auto dense = Cnn::layer_parameters<2>(all.data());
  CHECK(dense[0].data() == all.data() + Cnn::parameters[2].offset);
  CHECK(dense[1].shape() == dist::Shape{128});
  CHECK(Cnn::layer_parameters<1>(all.data()).empty());
  CHECK(Cnn::first_parameter[2] == 2);
}

TEST_CASE("initialisation depends on the seed, and differs between layers with equal shapes") {
  using Twins = nn::Sequential<nn::Input<8>, nn::Dense<8>, nn::Dense<8>>;
  std::vector<float> first(Twins::padded_count, 7.0F);
  std::vector<float> again(Twins::padded_count);
  std::vector<float> other(Twins::padded_count);
  const dist::Shape shape{Twins::padded_count};
  Twins::initialize(dist::TensorView<float>{first.data(), shape}, 1);
  Twins::initialize(dist::TensorView<float>{again.data(), shape}, 1);
  Twins::initialize(dist::TensorView<float>{other.data(), shape}, 2);
  const auto kernel = [](std::vector<float>& all, std::size_t which) {
    const auto view =
        dist::TensorView<float>{all.data() + Twins::parameters[which].offset, Twins::parameters[which].shape};
    return std::vector<float>(view.data(), view.data() + view.size());
  };
  CHECK(kernel(first, 0) == kernel(again, 0));
  CHECK(kernel(first, 0) != kernel(other, 0));
  CHECK(kernel(first, 0) != kernel(first, 2));
  CHECK(kernel(first, 1) == std::vector<float>(8, 0.0F));  // biases start at zero
}

TEST_CASE("a network has its layers' state, and uses_replica if one of them does") {
  using Normalised = nn::Sequential<nn::Input<2>, nn::Dense<3>, nn::BatchNormalization<>>;
  CHECK_FALSE(Cnn::uses_replica);
  CHECK(Cnn::state_count == 0);
  CHECK(Normalised::uses_replica);
  CHECK(Normalised::parameter_count == 2 * 3 + 3 + 3 + 3);
  CHECK(Normalised::state_count == 6);
  CHECK(Normalised::padded_state_count == 32);
  std::vector<double> all(32, -1.0);
  Normalised::initialize_state(dist::TensorView<double>{all.data(), dist::Shape{32}});
  const auto state = Normalised::layer_state<1>(all.data());
  CHECK(state[0][2] == 0);
  CHECK(state[1][2] == 1);
  CHECK(all[3] == -1);  // padding
  CHECK(Normalised::layer_state<0>(all.data()).empty());
}

TEST_CASE("gamma starts at one, beta at zero") {
  using Normalised = nn::Sequential<nn::Input<2>, nn::BatchNormalization<>>;
  std::vector<float> all(32, -1.0F);
  Normalised::initialize(dist::TensorView<float>{all.data(), dist::Shape{32}}, 1);
  CHECK(all[1] == 1);
  CHECK(all[17] == 0);
}

TEST_CASE("an inner Sequential expands to its layers") {
  using Inner = nn::Sequential<nn::Dense<3>, nn::Sequential<>, nn::Dense<4>>;
  using Net = nn::Sequential<nn::Input<2>, nn::Dense<5>, Inner, nn::Sequential<nn::Dense<1>>>;
  CHECK(std::is_same_v<Net::Bound,
                       nn::Sequential<nn::Input<2>, nn::Dense<5>, nn::Dense<3>, nn::Dense<4>, nn::Dense<1>>::Bound>);
  CHECK(Net::layer_count == 4);
  CHECK(Net::parameters[6].name() == "dense_3/kernel");
}

TEST_CASE("a block takes its layers from the shape of its input") {
  using nn::Sequential, nn::Dense, nn::Relu, nn::Named, nn::Residual;
  using Four = Sequential<Dense<16, Relu>, Dense<4>>;
  check_equal_networks<Sequential<nn::Input<4>, FeedForward<4>, Dense<2>>,  //
                       Sequential<nn::Input<4>, Four, Dense<2>>>();
  check_equal_networks<Sequential<nn::Input<4>, Residual<FeedForward<4>>>, Sequential<nn::Input<4>, Residual<Four>>>();
  check_equal_networks<Sequential<nn::Input<4>, Named<"block", FeedForward<4>>, Dense<2>>,
                       Sequential<nn::Input<4>, Named<"block", Four>, Dense<2>>>();
  check_equal_networks<Sequential<nn::Input<2, 3>, Widen, Twice>,
                       Sequential<nn::Input<2, 3>, Dense<4>, Dense<8, Relu>, Dense<4>, Dense<12, Relu>, Dense<4>>>();
}

TEST_CASE("the name of a block is a scope, also around blocks and layers") {
  using nn::Sequential, nn::Dense, nn::Relu, nn::Named, nn::Residual;
  check_equal_networks<
      Sequential<nn::Input<3>, Named<"a", Sequential<Widen, Named<"b", Residual<Twice>>>>>,
      Sequential<
          nn::Input<3>,
          Named<"a", Sequential<Dense<4>, Named<"b", Residual<Sequential<  //
                                                         Dense<8, Relu>, Dense<4>, Dense<12, Relu>, Dense<4>>>>>>>>();
  CHECK(Sequential<nn::Input<3>, Named<"wide", Widen>>::parameters[0].name() == "wide/dense/kernel");
}
