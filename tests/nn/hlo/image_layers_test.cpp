#include <dist/nn/hlo/image_layers.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>

#include <dist/core/float16.hpp>
#include <dist/nn/activations/smooth.hpp>
#include <dist/nn/hlo/dense.hpp>
#include <dist/nn/hlo/layers.hpp>
#include <dist/nn/layers/activate.hpp>
#include <dist/nn/layers/views.hpp>
#include <dist/nn/mixed_precision.hpp>
#include <dist/nn/sequential.hpp>

#include "nn/hlo/check_lowering.hpp"

namespace nn = dist::nn;

namespace {

struct Fast : nn::BatchNormalizationOptions {
  static constexpr double momentum = 0.5;
};

}  // namespace

TEST_CASE("convolutions in programs and their gradients match the plain loops") {
  using Net = nn::Sequential<nn::Input<9, 8, 2>, nn::Conv2D<4, 3, nn::Relu>, nn::Conv2D<4, 3, nn::Linear, 2, nn::Same>,
                             nn::Conv2D<6, 2, nn::Relu, 1, nn::Pad<1, 0>, nn::GlorotUniform, nn::Zeros, 2>,
                             nn::DepthwiseConv2D<2, nn::Relu, 2, nn::Same, 2>>;
  dist_test::check_emitted<Net>({{3}});
}

TEST_CASE("convolutions of sequences match the plain loops in programs") {
  using Net = nn::Sequential<nn::Input<11, 3>, nn::Conv1D<6, 4, nn::Relu, 2, nn::Same>,
                             nn::Conv1D<4, 3, nn::Tanh, 1, nn::Pad<2, 0>, nn::GlorotUniform, nn::NoBias>>;
  dist_test::check_emitted<Net>({{3}});
}

TEST_CASE("transposed convolutions match the plain loops in programs") {
  using Net = nn::Sequential<nn::Input<3, 4, 2>, nn::Conv2DTranspose<3, 3, nn::Tanh, 2, nn::Same>,
                             nn::Conv2DTranspose<2, 2, nn::Relu, 1, nn::Valid, nn::GlorotUniform, nn::NoBias>,
                             nn::Conv2DTranspose<2, 1, nn::Linear, 2>>;
  dist_test::check_emitted<Net>({{3}});
}

TEST_CASE("pooling of sequences matches the plain loops in programs") {
  using Net =
      nn::Sequential<nn::Input<9, 2>, nn::MaxPool1D<3, 2, nn::Same>,
                     nn::AveragePool1D<2, 1, nn::Pad<1, 0>, nn::CountPadding>, nn::AveragePool1D<3, 2, nn::Same>,
                     nn::Concatenate<nn::GlobalAveragePool1D, nn::GlobalMaxPool1D>>;
  dist_test::check_emitted<Net>({{3}});
}

TEST_CASE("repeated pixels in programs match the plain loops") {
  using Net = nn::Sequential<nn::Input<3, 2, 2>, nn::UpSampling2D<2>, nn::Conv2D<3, 2>, nn::UpSampling2D<3>>;
  dist_test::check_emitted<Net>({{3}});
}

TEST_CASE("layers without bias, and dense layers on several axes, match the plain loops in programs") {
  using Net =
      nn::Sequential<nn::Input<5, 4, 2>, nn::Conv2D<3, 2, nn::Relu, 1, nn::Valid, nn::GlorotUniform, nn::NoBias>,
                     nn::DepthwiseConv2D<2, nn::Linear, 1, nn::Same, 2, nn::GlorotUniform, nn::NoBias>,
                     nn::Dense<4, nn::Relu>, nn::Dense<3, nn::Tanh, nn::GlorotUniform, nn::NoBias>>;
  dist_test::check_emitted<Net>({{3}});
}

TEST_CASE("convolutions and dense layers in programs round their factors like the plain loops (spec P22)") {
  // A small network, so that no number is close to the middle of two 16-bit numbers.
  using Net = nn::Sequential<nn::Input<4, 3, 2>, nn::Conv2D<2, 2, nn::Relu>,
                             nn::DepthwiseConv2D<2, nn::Linear, 1, nn::Valid, 2>, nn::Flatten, nn::Dense<3, nn::Tanh>>;
  dist_test::check_emitted<Net, true, nn::MixedPrecision<nn::Reference, dist::BFloat16>>({{3}});
}

TEST_CASE("pooling in programs ignores padding, and chooses the first of several maxima") {
  using Padded =
      nn::Sequential<nn::Input<6, 5, 2>,
                     nn::Add<nn::MaxPool2D<3, 2, nn::Same>, nn::AveragePool2D<3, 2, nn::Same>,
                             nn::AveragePool2D<3, 2, nn::Same, nn::CountPadding>,
                             nn::Sequential<nn::MaxPool2D<2, 1, nn::Pad<1, 0>>, nn::AveragePool2D<2, 2, nn::Same>>>>;
  using Whole = nn::Concatenate<nn::Sequential<nn::MaxPool2D<2>, nn::Flatten>, nn::GlobalAveragePool2D,
                                nn::GlobalMaxPool2D, nn::Sequential<nn::AveragePool2D<2>, nn::GlobalMaxPool2D>>;
  // Four different values, so that many elements are equal.
  const auto few = [](std::size_t count, std::uint64_t stream) {
    dist_test::List values = dist_test::numbers(count, stream);
    for (double& each : values) each = std::floor(4 * each);
    return values;
  };
  dist_test::check_emitted<Padded>({{2}}, few);
  dist_test::check_emitted<nn::Sequential<nn::Input<4, 5, 3>, Whole>>({{2}}, few);
}

TEST_CASE("the guide's network, and a residual network on two replicas, match the plain loops in programs") {
  using Guide = nn::Sequential<nn::Input<12, 12, 1>, nn::Conv2D<8, 3, nn::Relu>, nn::Flatten, nn::Dense<16, nn::Relu>,
                               nn::Dense<10>>;
  dist_test::check_emitted<Guide>({{6}});

  using Normalize = nn::BatchNormalization<nn::SynchronizedStatistics, Fast>;
  using Body = nn::Sequential<nn::Conv2D<6, 3, nn::Linear, 2, nn::Same>, Normalize, nn::ReLU,
                              nn::Conv2D<6, 3, nn::Linear, 1, nn::Same>, Normalize>;
  using Projection = nn::Sequential<nn::Conv2D<6, 1, nn::Linear, 2>, Normalize>;
  using Residual = nn::Sequential<nn::Input<8, 8, 3>, nn::Conv2D<4, 3, nn::Linear, 1, nn::Same>, Normalize, nn::ReLU,
                                  nn::Residual<Body, Projection>, nn::ReLU, nn::GlobalAveragePool2D, nn::Dense<5>>;
  dist_test::check_emitted<Residual>({{4, 2}, {3, 0}});
}
