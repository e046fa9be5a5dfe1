#include <dist/nn/hlo/dense.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <tuple>
#include <vector>

#include <dist/nn/activations/smooth.hpp>
#include <dist/nn/sequential.hpp>
#include <hlo/run.hpp>
#include <nn/place_layer.hpp>

namespace hlo = dist::hlo;
namespace nn = dist::nn;
using dist::Tensor;
template <std::size_t... Extents>
using Doubles = hlo::Traced<double, Extents...>;

TEST_CASE("Dense in a program matches the host, with its activation") {
  using Net = nn::Sequential<nn::Input<3>, nn::Dense<2, nn::Tanh>, nn::Dense<3, nn::Relu>, nn::Dense<1>>;
  const std::vector<double> x{0.25, -1, 0.5, 1, 0.75, -0.125};
  const std::vector<double> first{0.5, -0.25, 1, 2, -0.75, 0.125}, first_bias{0.1, -0.2};
  const std::vector<double> second{1, -1, 0.5, -2, 0.25, 1.5}, second_bias{0.3, -0.4, 0.05};
  const std::vector<double> third{2, -3, 0.5}, third_bias{0.7};
  const auto y =
      testing::run<Doubles<2, 3>, Doubles<3, 2>, Doubles<2>, Doubles<2, 3>, Doubles<3>, Doubles<3, 1>, Doubles<1>>(
          1,
          [](auto in, auto... parameters) {
            std::tuple<> state;
            const nn::TraceArguments<nn::Training> arguments{{2}, {0}};
            return nn::emit_forward<Net>(arguments, std::tuple{parameters...}, state, in);
          },
          Tensor<double>{{2, 3}, x}, Tensor<double>{{3, 2}, first}, Tensor<double>{{2}, first_bias},
          Tensor<double>{{2, 3}, second}, Tensor<double>{{3}, second_bias}, Tensor<double>{{3, 1}, third},
          Tensor<double>{{1}, third_bias});
  dist_test::BoundLayer<nn::Dense<2, nn::Tanh>, dist::StaticShape<3>> tanh_layer;
  dist_test::BoundLayer<nn::Dense<3, nn::Relu>, dist::StaticShape<2>> relu_layer;
  dist_test::BoundLayer<nn::Dense<1>, dist::StaticShape<3>> linear_layer;
  const auto hidden = relu_layer.forward(tanh_layer.forward(x, {first, first_bias}), {second, second_bias});
  // Some units are 0 and some are not, so that the activation matters.
  CHECK(std::count(hidden.begin(), hidden.end(), 0.0) > 0);
  const auto expected = linear_layer.forward(hidden, {third, third_bias});
  REQUIRE(y.size() == expected.size());
  for (std::size_t i = 0; i < y.size(); ++i) CHECK(y[i] == doctest::Approx(expected[i]).epsilon(1e-13));
}
