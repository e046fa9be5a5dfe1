#include <dist/nn/hlo/dense.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <tuple>
#include <vector>

#include <dist/nn/activations/smooth.hpp>
#include <dist/nn/hlo/layers.hpp>
#include <dist/nn/layers/activate.hpp>
#include <dist/nn/sequential.hpp>
#include <hlo/run.hpp>
#include <nn/hlo/check_lowering.hpp>
#include <nn/own_activations.hpp>
#include <nn/place_layer.hpp>

namespace hlo = dist::hlo;
namespace nn = dist::nn;

namespace {

using Row = dist::StaticShape<6>;
using Doubles = hlo::Traced<double, 1, 6>;
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

template <class Layer>
Doubles emitted(Doubles x) {
  using Bound = typename Layer::template On<Row>;
  const nn::TraceArguments<nn::Inference> arguments{{1}, {0}};
  std::tuple<> state;
  return nn::Lowering<typename Bound::Layer>::template forward<Bound>(arguments, x, std::tuple<>{}, state);
}

/// Checks that the layers' outputs match the plain loops on the host.
template <class... Layers>
void check_layers(const std::vector<double>& x) {
  const auto results = testing::run<Doubles>(
      1, [](Doubles in) { return std::tuple{emitted<Layers>(in)...}; }, dist::Tensor<double>{{1, 6}, x});
  const auto check = [&]<class Layer>(const dist::Tensor<double>& computed, Layer*) {
    CAPTURE((Layer::template On<Row>::name));
    const auto expected = dist_test::BoundLayer<Layer, Row>{}.forward(x);
    for (std::size_t i = 0; i < x.size(); ++i) {
      CAPTURE(x[i]);
      if (std::isnan(expected[i]))
        CHECK(std::isnan(computed[i]));
      else
        CHECK(computed[i] == doctest::Approx(expected[i]).epsilon(1e-13));
    }
  };
  std::apply([&](const auto&... computed) { (check(computed, static_cast<Layers*>(nullptr)), ...); }, results);
}

}  // namespace

TEST_CASE("activation layers in programs match the host") {
  check_layers<nn::ReLU, nn::Activate<nn::Linear>, nn::Activate<nn::Sigmoid>, nn::Activate<nn::Tanh>,
               nn::Activate<nn::Silu>, nn::Activate<nn::Gelu>, nn::Activate<nn::GeluTanh>, nn::Activate<nn::Elu<1, 2>>,
               nn::Activate<nn::Softplus>, nn::Activate<nn::LeakyRelu<>>, nn::Activate<nn::HardSilu>,
               nn::Activate<dist_test::Square>>({-30, -1.25, 0, 0.5, 3, not_a_number});
}

TEST_CASE("gradients of activations in programs are their explicit gradients, not the gradients of their operations") {
  using Each = nn::Concatenate<nn::ReLU, nn::Activate<nn::Sigmoid>, nn::Activate<nn::Tanh>, nn::Activate<nn::Silu>,
                               nn::Activate<nn::Gelu>, nn::Activate<nn::GeluTanh>, nn::Activate<nn::Elu<1, 2>>,
                               nn::Activate<nn::Softplus>, nn::Activate<nn::LeakyRelu<>>, nn::Activate<nn::HardSilu>,
                               nn::Activate<dist_test::Square>>;
  dist_test::check_emitted<nn::Sequential<nn::Input<6>, Each>>({{3}}, [](std::size_t count, std::uint64_t) {
    std::vector<double> values(count);
    for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<double>(i % 5) - 2;  // includes 0
    return values;
  });
}
