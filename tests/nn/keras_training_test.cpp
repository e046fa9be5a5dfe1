// Trains networks as in Keras: with the same weights and batch, and compares the losses with keras_fixtures.py.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include <dist/core/tensor.hpp>
#include <dist/nn/layers/activate.hpp>
#include <dist/nn/layers/add.hpp>
#include <dist/nn/layers/batch_normalization.hpp>
#include <dist/nn/layers/conv2d.hpp>
#include <dist/nn/layers/dense.hpp>
#include <dist/nn/layers/pool2d.hpp>
#include <dist/nn/layers/views.hpp>
#include <dist/nn/losses/sparse_categorical_crossentropy.hpp>
#include <dist/nn/network.hpp>
#include <dist/nn/onednn/backend.hpp>
#include <dist/nn/optimizer.hpp>
#include <dist/nn/optimizers/adam.hpp>
#include <dist/nn/reference/backend.hpp>
#include <dist/nn/sequential.hpp>
#include <dist/strategy/default.hpp>

#include <doctest/doctest.h>

#include "nn/keras_fixtures.hpp"

namespace nn = dist::nn;

namespace {

using Cnn = nn::Sequential<nn::Input<12, 12, 1>, nn::Conv2D<8, 3, nn::Relu>, nn::Flatten, nn::Dense<16, nn::Relu>,
                           nn::Dense<10>>;

using Normalize = nn::BatchNormalization<>;
template <std::size_t Filters, std::size_t Window, std::size_t Stride = 1>
using Normalized = nn::Sequential<nn::Conv2D<Filters, Window, nn::Linear, Stride, nn::Same>, Normalize>;
template <std::size_t Filters, std::size_t Stride, class Shortcut>
using Block = nn::Sequential<
    nn::Residual<nn::Sequential<Normalized<Filters, 3, Stride>, nn::ReLU, Normalized<Filters, 3>>, Shortcut>, nn::ReLU>;
using ResidualNetwork =
    nn::Sequential<nn::Input<32, 32, 3>, Normalized<4, 7, 2>, nn::ReLU, nn::MaxPool2D<3, 2, nn::Same>,
                   Block<4, 1, nn::Sequential<>>, Block<8, 2, Normalized<8, 1, 2>>, Block<16, 2, Normalized<16, 1, 2>>,
                   Block<32, 2, Normalized<32, 1, 2>>, nn::GlobalAveragePool2D, nn::Dense<10>>;

/// The function of the same name in keras_fixtures.py.
template <class T>
dist::Tensor<T> scattered(const dist::Shape& shape, std::uint32_t which, double scale) {
  dist::Tensor<T> values{shape};
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::uint32_t h = static_cast<std::uint32_t>(i) + which * 1000003U;
    h = (h ^ (h >> 16)) * 0x85EBCA6BU;
    h = (h ^ (h >> 13)) * 0xC2B2AE35U;
    h = h ^ (h >> 16);
    values[i] = static_cast<T>((static_cast<double>(h >> 20) - 2048) / 2048 * scale);
  }
  return values;
}

template <class Net, class Backend, class T>
std::vector<double> losses(std::size_t steps) {
  constexpr std::size_t rows = 8;
  const auto x = scattered<T>(Net::InputShape::shape().stacked(rows), 0, 1);
  dist::Tensor<std::int32_t> labels{dist::Shape{rows}};
  for (std::size_t i = 0; i < rows; ++i) labels[i] = static_cast<std::int32_t>(i * 3 % 10);
  dist::Default strategy;
  nn::Network<Net, Backend, T> net{strategy};
  std::uint32_t which = 0;
  for (const nn::Parameter& parameter : net.layout()) {
    ++which;
    if (parameter.kind != "kernel") continue;
    const dist::Shape& shape = parameter.shape;
    const auto fan_in = static_cast<double>(shape.elements() / shape[shape.rank() - 1]);
    const double scale = std::exp2(std::floor(std::log2(std::sqrt(6 / fan_in))));
    net.assign_parameter(strategy.scope(), parameter.name(), scattered<T>(shape, which, scale));
  }
  nn::Optimizer optimizer{strategy, net, nn::Adam{}};
  std::vector<double> values;
  for (std::size_t step = 0; step < steps; ++step)
    values.push_back(static_cast<double>(strategy.run([&](auto& replica) {
      const auto logits = net.forward(replica, x);
      const auto loss = nn::sparse_categorical_crossentropy(replica, logits, labels, rows);
      net.backward(replica, loss);
      optimizer.apply_gradients(replica);
      return loss.value();
    })));
  return values;
}

void check_near(const std::vector<double>& values, const std::vector<double>& expected, double tolerance) {
  REQUIRE(values.size() <= expected.size());
  for (std::size_t step = 0; step < values.size(); ++step) {
    CAPTURE(step);
    CHECK(std::abs(values[step] - expected[step]) <= tolerance * expected[step]);
  }
}

}  // namespace

TEST_CASE("50 losses in float64 agree with Keras") {
  check_near(losses<Cnn, nn::Reference, double>(50), keras::cnn_losses, 1e-6);
  check_near(losses<ResidualNetwork, nn::Reference, double>(50), keras::residual_network_losses, 1e-6);
}

TEST_CASE("the first 10 losses with oneDNN in float32 are close to Keras") {
  check_near(losses<Cnn, nn::OneDnn, float>(10), keras::cnn_losses, 1e-3);
  check_near(losses<ResidualNetwork, nn::OneDnn, float>(10), keras::residual_network_losses, 1e-3);
}
