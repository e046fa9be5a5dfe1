/// The suite of non-finite numbers: each layer propagates them like plain loops. A back end joins with
/// check_not_finite.
///
/// A NaN or infinity in one element of the batch, the parameters or the output gradient must give outputs and gradients
/// of the same kinds as nn::Reference: NaN, infinite or finite. Each number here is a sum of products, whose kind does
/// not depend on the order of additions.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <tuple>
#include <vector>

#include <dist/nn/activation.hpp>
#include <dist/nn/activations/smooth.hpp>
#include <dist/nn/chain.hpp>
#include <dist/nn/layers/activate.hpp>
#include <dist/nn/layers/conv2d.hpp>
#include <dist/nn/layers/dense.hpp>
#include <dist/nn/layers/group_normalization.hpp>
#include <dist/nn/layers/multi_head_attention.hpp>
#include <dist/nn/layers/pool2d.hpp>
#include <dist/nn/layers/softmax.hpp>
#include <dist/nn/layers/views.hpp>
#include <dist/nn/reference/backend.hpp>
#include <dist/nn/sequential.hpp>

#include <doctest/doctest.h>

#include "nn/run_network.hpp"

namespace conformance {

namespace not_finite {

namespace nn = dist::nn;
using List = std::vector<double>;

/// The activation in a dense layer, between dense layers, and in convolutions of many and of few pixels.
template <class F>
using Dense = nn::Sequential<nn::Input<6>, nn::Dense<19, F>, nn::Dense<5>, nn::Activate<F>, nn::Dense<3, F>>;
template <class F>
using Convolutions = nn::Sequential<nn::Input<6, 6, 3>, nn::Conv2D<5, 3, F>, nn::Conv2D<16, 3, F>>;

template <class... Pooling>
using Pooled = nn::Sequential<nn::Input<5, 5, 2>, nn::Conv2D<17, 2>, Pooling...>;

template <class... Functions>
using WithActivations = std::tuple<Dense<Functions>..., Convolutions<Functions>...>;
using Layers =
    std::tuple<Pooled<nn::MaxPool2D<2>>, Pooled<nn::MaxPool2D<3, 1>, nn::GlobalMaxPool2D>, Pooled<nn::AveragePool2D<2>>,
               Pooled<nn::GlobalAveragePool2D>, nn::Sequential<nn::Input<4>, nn::Dense<17>, nn::Softmax>,
               nn::Sequential<nn::Input<4>, nn::Dense<17>, nn::LayerNormalization<>>,
               nn::Sequential<nn::Input<3, 4>, nn::MultiHeadAttention<2, 2>>>;
using Networks = decltype(std::tuple_cat(
    WithActivations<nn::Linear, nn::Relu, nn::Tanh, nn::Sigmoid, nn::Gelu, nn::GeluTanh, nn::Silu, nn::Elu<>>{},
    Layers{}));

inline constexpr std::size_t rows = 4;

/// Returns one letter per number.
inline std::string kinds(const List& numbers) {
  std::string kinds;
  for (const double each : numbers) kinds += std::isnan(each) ? 'N' : std::isfinite(each) ? '.' : each > 0 ? '+' : '-';
  return kinds;
}

/// The input of a network: `of_parameters` is the number of elements of each parameter.
struct Given {
  List parameters, batch, targets;
};

/// Passes of a network with a back end in float, on the same workspace.
template <class Net, class Backend>
class Network {
 public:
  dist_test::Pass operator()(const Given& given) {
    return pass(bench_, workspace_, given.parameters, given.batch, given.targets);
  }

 private:
  dist_test::Bench<Backend> bench_;
  nn::Workspace<Net, Backend, float> workspace_{bench_.queue()};
};

/// `compute(given)` is a pass of the network with another back end.
template <class Net, class Compute>
void check(Compute&& compute) {
  Network<Net, nn::Reference> oracle;
  Given given{dist_test::numbers(Net::padded_count, 1), dist_test::numbers(rows * Net::InputShape::elements, 2),
              dist_test::numbers(rows * Net::OutputShape::elements, 3)};
  const auto check_at = [&](const std::string& what, double& number) {
    CAPTURE(what);
    const double before = number;
    for (const double special : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(),
                                 -std::numeric_limits<double>::infinity()}) {
      CAPTURE(special);
      number = special;
      const dist_test::Pass wanted = oracle(given);
      const dist_test::Pass computed = compute(given);
      CHECK(kinds(computed.outputs) == kinds(wanted.outputs));
      CHECK(kinds(computed.gradients) == kinds(wanted.gradients));
    }
    number = before;
  };
  for (const std::size_t at : {std::size_t{0}, given.batch.size() / 2, given.batch.size() - 1})
    check_at("the batch", given.batch[at]);
  for (const nn::Parameter& parameter : Net::parameters)
    for (const std::size_t at : {std::size_t{0}, parameter.shape.elements() - 1})
      check_at("a parameter", given.parameters[parameter.offset + at]);
  for (const std::size_t at : {std::size_t{0}, given.targets.size() - 1})
    check_at("the gradient of the outputs", given.targets[at]);
}

}  // namespace not_finite

/// Checks a back end that computes layer by layer.
template <class Backend>
void check_not_finite() {
  [&]<class... Net>(std::type_identity<std::tuple<Net...>>) {
    (not_finite::check<Net>(not_finite::Network<Net, Backend>{}), ...);
  }(std::type_identity<not_finite::Networks>{});
}

}  // namespace conformance
