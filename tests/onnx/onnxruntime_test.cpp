// The package onnx accepts the models, and onnxruntime computes the outputs of the networks.
#include <dist/onnx/export_onnx.hpp>

#include <cmath>
#include <cstddef>
#include <string>
#include <string_view>

#include <dist/core/random.hpp>
#include <dist/core/tensor.hpp>
#include <dist/core/track.hpp>
#include <dist/io/npz.hpp>
#include <dist/io/npz_writer.hpp>
#include <dist/nn/activations/smooth.hpp>
#include <dist/nn/layers/activate.hpp>
#include <dist/nn/layers/named.hpp>
#include <dist/nn/outputs.hpp>
#include <dist/strategy/default.hpp>

#include <doctest/doctest.h>

#include <support/python.hpp>
#include <support/temporary_folder.hpp>

namespace nn = dist::nn;

namespace {

const testing::NeedsPython needs_onnx{"onnx, onnxruntime"};

constexpr std::size_t rows = 3;

/// Returns numbers between -0.5 and 0.5, or ids below `words`.
dist::Tensor<float> batch_of(const dist::Shape& row, std::size_t words) {
  dist::Tensor<float> x{row.stacked(rows)};
  const dist::RandomStream random{3, 1};
  for (std::size_t i = 0; i < x.size(); ++i) {
    const float number = random.uniform<float>(i);
    x[i] = words == 0 ? number - 0.5F : std::floor(number * static_cast<float>(words)) + 0.25F;
  }
  return x;
}

/// Exports a network with weights of every kind, and compares onnxruntime with the network's predictions.
template <class Net>
void check(const std::string& described, std::size_t words = 0) {
  const support::TemporaryFolder folder;
  dist::Default strategy;
  nn::Network<Net> network{strategy, 5};
  auto scope = strategy.scope();
  // Changes initial values, because equal biases, scales or statistics would hide mistakes.
  dist::walk(network, [&](std::string_view key, auto& leaf) {
    auto values = leaf.whole(scope);
    const dist::RandomStream random{7, key.size()};
    if (values.shape().rank() <= 1 && !key.ends_with("seed_generator_state"))
      for (std::size_t i = 0; i < values.size(); ++i) values[i] = random.uniform<float>(i) + 0.25F;
    leaf.restore(scope, values);
  });
  const auto x = batch_of(Net::InputShape::shape(), words);
  dist::io::NpzWriter batch{folder.path("model.npz")};
  batch.add("x", x);
  batch.commit();
  nn::export_onnx(strategy, network, folder.path("model.onnx"));
  CHECK(testing::python_output("onnx/evaluate.py", folder.path()) == described);
  const auto theirs = dist::io::Npz{folder.path("model.out.npz")}.read<float>("y");
  strategy.run([&](const auto& replica) {
    const auto ours = network.forward(replica, dist::TensorView<const float>{x}, nn::inference).values;
    REQUIRE(theirs.shape() == ours.shape());
    double largest = 0;
    double difference = 0;
    for (std::size_t i = 0; i < ours.size(); ++i) {
      largest = std::fmax(largest, std::fabs(ours[i]));
      difference = std::fmax(difference, std::fabs(double{ours[i]} - double{theirs[i]}));
    }
    CAPTURE(difference);
    CAPTURE(largest);
    CHECK(largest > 1e-3);
    CHECK(difference <= 1e-5 * std::fmax(1.0, largest));
  });
}

using Normalize = nn::BatchNormalization<>;
template <std::size_t Filters, std::size_t Stride>
using Body = nn::Sequential<nn::Conv2D<Filters, 3, nn::Linear, Stride, nn::Same>, Normalize, nn::ReLU,
                            nn::Conv2D<Filters, 3, nn::Linear, 1, nn::Same>, Normalize>;
template <std::size_t Filters, std::size_t Stride>
using Projection = nn::Sequential<nn::Conv2D<Filters, 1, nn::Linear, Stride>, Normalize>;
template <std::size_t Filters, std::size_t Stride, class Shortcut>
using Block = nn::Sequential<nn::Residual<Body<Filters, Stride>, Shortcut>, nn::ReLU>;

struct LikeLlama : nn::AttendToPast {
  static constexpr std::size_t key_heads = 2;
  using Positions = nn::RotaryPositions<>;
};
template <class Reach>
using Encoder =
    nn::Sequential<nn::Residual<nn::Sequential<nn::LayerNormalization<>, nn::MultiHeadAttention<2, 3, Reach>>>,
                   nn::Residual<nn::Sequential<nn::LayerNormalization<>, nn::Flatten, nn::Dense<20, nn::Gelu>,
                                               nn::Dropout<10>, nn::Dense<5 * 6>, nn::Reshape<5, 6>>>>;

}  // namespace

TEST_CASE("onnxruntime agrees with the guide's CNN") {
  check<nn::Sequential<nn::Input<12, 12, 1>, nn::Conv2D<8, 3, nn::Relu>, nn::MaxPool2D<2>, nn::Conv2D<6, 3, nn::Relu>,
                       nn::MaxPool2D<2>, nn::Flatten, nn::Dropout<50>, nn::Dense<16, nn::Relu>, nn::Dense<10>,
                       nn::Softmax>>("input FLOAT ['batch', 12, 12, 1] -> output FLOAT ['batch', 10]\n");
}

TEST_CASE("onnxruntime agrees with a residual network") {
  check<nn::Sequential<nn::Input<16, 16, 3>,
                       nn::Named<"stem", nn::Sequential<nn::Conv2D<8, 7, nn::Linear, 2, nn::Same>, Normalize, nn::ReLU,
                                                        nn::MaxPool2D<3, 2, nn::Same>>>,
                       nn::Named<"block_1", Block<8, 1, nn::Sequential<>>>,
                       nn::Named<"block_2", Block<12, 2, Projection<12, 2>>>, nn::GlobalAveragePool2D, nn::Dense<10>>>(
      "input FLOAT ['batch', 16, 16, 3] -> output FLOAT ['batch', 10]\n");
}

TEST_CASE("onnxruntime agrees with a transformer") {
  check<nn::Sequential<nn::Input<5>, nn::Named<"wte", nn::Embedding<20, 6>>, nn::LearnedPositions<>,
                       Encoder<nn::AttendToAll>, Encoder<nn::AttendToPast>,
                       nn::MultiHeadAttention<4, 2, LikeLlama, nn::GlorotUniform, nn::NoBias>, nn::LayerNormalization<>,
                       nn::Unembed<"wte">, nn::Bias<nn::GlorotUniform>>>(
      "input FLOAT ['batch', 5] -> output FLOAT ['batch', 5, 20]\n", 20);
}

TEST_CASE("onnxruntime agrees with groups, paddings, strides, and pools across the border") {
  check<
      nn::Sequential<nn::Input<9, 7, 4>, nn::Conv2D<6, 3, nn::Tanh, 2, nn::Pad<2, 1>, nn::GlorotUniform, nn::Zeros, 2>,
                     nn::DepthwiseConv2D<3, nn::Silu, 1, nn::Same, 2>, nn::AveragePool2D<3, 2, nn::Same>,
                     nn::MaxPool2D<2, 1, nn::Pad<1>>>>(
      "input FLOAT ['batch', 9, 7, 4] -> output FLOAT ['batch', 4, 3, 12]\n");
}

TEST_CASE("onnxruntime agrees with convolutions of sequences") {
  check<nn::Sequential<nn::Input<11, 3>, nn::Conv1D<6, 4, nn::Relu, 2, nn::Same>,
                       nn::Conv1D<4, 3, nn::Tanh, 1, nn::Pad<2, 0>, nn::GlorotUniform, nn::NoBias>>>(
      "input FLOAT ['batch', 11, 3] -> output FLOAT ['batch', 6, 4]\n");
}

TEST_CASE("onnxruntime agrees with repeated pixels") {
  check<nn::Sequential<nn::Input<3, 2, 2>, nn::UpSampling2D<2>, nn::Conv2D<3, 2>, nn::UpSampling2D<3>>>(
      "input FLOAT ['batch', 3, 2, 2] -> output FLOAT ['batch', 15, 9, 3]\n");
}

TEST_CASE("onnxruntime agrees with transposed convolutions") {
  check<nn::Sequential<nn::Input<3, 4, 2>, nn::Conv2DTranspose<3, 3, nn::Tanh, 2, nn::Same>,
                       nn::Conv2DTranspose<2, 2, nn::Relu, 1, nn::Valid, nn::GlorotUniform, nn::NoBias>,
                       nn::Conv2DTranspose<2, 1, nn::Linear, 2>>>(
      "input FLOAT ['batch', 3, 4, 2] -> output FLOAT ['batch', 14, 18, 2]\n");
}

TEST_CASE("onnxruntime agrees with pooling of sequences") {
  check<nn::Sequential<nn::Input<9, 2>, nn::Conv1D<2, 1>, nn::MaxPool1D<3, 2, nn::Same>,
                       nn::AveragePool1D<2, 1, nn::Pad<1, 0>, nn::CountPadding>, nn::AveragePool1D<3, 2, nn::Same>,
                       nn::Concatenate<nn::GlobalAveragePool1D, nn::GlobalMaxPool1D>>>(
      "input FLOAT ['batch', 9, 2] -> output FLOAT ['batch', 4]\n");
}

TEST_CASE("onnxruntime agrees with activations") {
  check<nn::Sequential<nn::Input<6>, nn::Dense<8, nn::LeakyRelu<30>>, nn::Dense<8, nn::Elu<1, 2>>,
                       nn::Dense<8, nn::Softplus>, nn::Dense<8, nn::HardSilu>, nn::Dense<8, nn::GeluTanh>>>(
      "input FLOAT ['batch', 6] -> output FLOAT ['batch', 8]\n");
}

TEST_CASE("onnxruntime agrees with normalisation of rows, pixels and groups, and with branches") {
  check<nn::Sequential<nn::Input<4, 3, 6>, nn::GroupNormalization<3>, nn::LayerNormalization<>,
                       nn::Concatenate<nn::Sequential<>, nn::Conv2D<5, 3, nn::Sigmoid, 1, nn::Same>, nn::Softmax>,
                       Normalize, nn::Softmax, nn::Concatenate<nn::GlobalMaxPool2D, nn::GlobalAveragePool2D>,
                       nn::BatchNormalization<>, nn::GroupNormalization<2>, nn::Activate<nn::Gelu>,
                       nn::Multiply<nn::Dense<3, nn::Silu>, nn::Dense<3>, nn::Dense<3, nn::Tanh>>>>(
      "input FLOAT ['batch', 4, 3, 6] -> output FLOAT ['batch', 3]\n");
}

TEST_CASE("onnxruntime agrees with layers without bias, dense layers on several axes, and means that count padding") {
  check<nn::Sequential<nn::Input<6, 5, 2>, nn::Conv2D<4, 3, nn::Relu, 1, nn::Same, nn::GlorotUniform, nn::NoBias>,
                       nn::Dense<3, nn::Tanh>, nn::RMSNormalization<>,
                       nn::Dense<4, nn::Linear, nn::GlorotUniform, nn::NoBias>,
                       nn::AveragePool2D<3, 1, nn::Pad<1>, nn::CountPadding>,
                       nn::DepthwiseConv2D<2, nn::Linear, 2, nn::Same, 1, nn::GlorotUniform, nn::NoBias>>>(
      "input FLOAT ['batch', 6, 5, 2] -> output FLOAT ['batch', 3, 3, 4]\n");
}
