#include <dist/nn/hlo/traced_regularizer.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <optional>
#include <span>
#include <tuple>

#include <dist/hlo/dynamic.hpp>
#include <hlo/run.hpp>
#include <nn/hlo/tracing.hpp>

namespace hlo = dist::hlo;
namespace nn = dist::nn;
using dist::Tensor;

namespace {

using Weights = hlo::Traced<float, 8>;

/// Weights in a program, in the place of a variable, whose gradients are kept for the test.
struct Network {
  struct Variable {
    using Element = float;
    Weights weights;
  };
  static constexpr std::size_t padded_count = 8;
  static constexpr std::array<nn::Parameter, 2> list{nn::Parameter{"dense", 0, "kernel", dist::Shape{3}, 0},
                                                     nn::Parameter{"dense", 0, "bias", dist::Shape{2}, 4}};
  static std::span<const nn::Parameter> layout() { return list; }
  Variable& parameters() { return variable; }
  void add_gradients(const auto&, Weights slopes) { gradients += slopes; }

  Variable variable;
  Weights gradients;
};
/// One of four replicas.
struct Tracing : dist_test::Tracing {
  Tracing() : dist_test::Tracing{1, 4} {}
  static hlo::Dynamic<float> read(const Network::Variable& variable) { return variable.weights; }
};

}  // namespace

TEST_CASE("regularization in a program is that of the host, of the parameters that are asked for") {
  const auto compute = [](Weights weights) {
    const Tracing replica;
    Network network{{weights}, Weights{1}};
    const auto part = nn::regularization_loss(replica, network, nn::L2{0.5F});
    const Weights of_kernel = network.gradients;
    network.gradients = Weights{0};
    const auto all = [](const nn::Parameter&) { return true; };
    nn::add_regularization_gradients(replica, network, nn::L1L2{.l1 = 2, .l2 = 0.25F}, all);
    return std::tuple{part, of_kernel, network.gradients, nn::total_regularization(replica, network, nn::L1{2}, all)};
  };
  // What is padding counts for nothing.
  const Tensor<float> weights{{8}, {1, -2, 3, 99, 0, -0.5F, 99, 99}};
  const auto [part, of_kernel, of_all, total] = testing::run<Weights>(1, compute, weights);
  CHECK(part[0] == 0.5F * 14 / 4);
  CHECK(of_kernel == Tensor<float>{{8}, {1 + 0.25F, 1 - 0.5F, 1 + 0.75F, 1, 1, 1, 1, 1}});
  CHECK(of_all == Tensor<float>{{8}, {(2 + 0.5F) / 4, (-2 - 1.0F) / 4, (2 + 1.5F) / 4, 0, 0, (-2 - 0.25F) / 4, 0, 0}});
  CHECK(total[0] == 2 * (1 + 2 + 3 + 0.5));
}
