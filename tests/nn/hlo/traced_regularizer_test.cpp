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

using Kernel = hlo::Traced<float, 3>;
using Bias = hlo::Traced<float, 2>;

/// Parameters in a program; keeps their gradients for the test.
struct Network {
  struct Variable {
    using Element = float;
  };
  static constexpr std::array<nn::Parameter, 2> list{nn::Parameter{"dense", 0, "kernel", dist::Shape{3}, 0},
                                                     nn::Parameter{"dense", 0, "bias", dist::Shape{2}, 4}};
  static std::span<const nn::Parameter> layout() { return list; }
  Variable& parameters() { return variable; }
  [[nodiscard]] const auto& traced_parameters(const auto&) const { return weights; }
  void add_gradient(const auto&, std::size_t number, hlo::Dynamic<float> slopes) { gradients[number] += slopes; }

  std::array<hlo::Dynamic<float>, 2> weights;
  std::array<hlo::Dynamic<float>, 2> gradients;
  Variable variable = {};
};

}  // namespace

TEST_CASE("regularization in a program matches the host, for the chosen parameters") {
  const auto compute = [](Kernel kernel, Bias bias) {
    const dist_test::Tracing replica{1, 4};
    Network network{{kernel, bias}, {Kernel{1}, Bias{1}}};
    const auto part = nn::regularization_loss(replica, network, nn::L2{0.5F});
    const auto of_kernel = network.gradients;
    network.gradients = {Kernel{0}, Bias{0}};
    const auto all = [](const nn::Parameter&) { return true; };
    nn::add_regularization_gradients(replica, network, nn::L1L2{.l1 = 2, .l2 = 0.25F}, all);
    return std::tuple{part,
                      of_kernel[0].as<3>(),
                      of_kernel[1].as<2>(),
                      network.gradients[0].as<3>(),
                      network.gradients[1].as<2>(),
                      nn::total_regularization(replica, network, nn::L1{2}, all)};
  };
  const auto [part, kernel_of_kernel, bias_of_kernel, kernel_of_all, bias_of_all, total] =
      testing::run<Kernel, Bias>(1, compute, Tensor<float>{{3}, {1, -2, 3}}, Tensor<float>{{2}, {0, -0.5F}});
  CHECK(part[0] == 0.5F * 14 / 4);
  CHECK(kernel_of_kernel == Tensor<float>{{3}, {1 + 0.25F, 1 - 0.5F, 1 + 0.75F}});
  CHECK(bias_of_kernel == Tensor<float>{{2}, {1, 1}});
  CHECK(kernel_of_all == Tensor<float>{{3}, {(2 + 0.5F) / 4, (-2 - 1.0F) / 4, (2 + 1.5F) / 4}});
  CHECK(bias_of_all == Tensor<float>{{2}, {0, (-2 - 0.25F) / 4}});
  CHECK(total[0] == 2 * (1 + 2 + 3 + 0.5));
}
