#include <dist/nn/onednn/layers.hpp>

#include <doctest/doctest.h>

#include <array>
#include <concepts>
#include <limits>

#include <dist/core/static_shape.hpp>
#include <dist/core/tensor.hpp>
#include <dist/nn/activations/smooth.hpp>
#include <dist/nn/geometry.hpp>
#include <dist/nn/layers/conv2d.hpp>
#include <dist/nn/layers/dense.hpp>
#include <dist/nn/layers/softmax.hpp>
#include <dist/nn/layers/views.hpp>
#include <dist/nn/onednn/backend.hpp>
#include <dist/nn/reference/backend.hpp>
#include <dist/nn/sequential.hpp>

#include "nn/own_activations.hpp"
#include "nn/run_network.hpp"

namespace nn = dist::nn;

// The compiler vectorises these loops, so oneDNN would not be faster.
static_assert(std::same_as<nn::onednn::Elementwise<nn::Relu, float>, nn::reference::Elementwise<nn::Relu, float>>);
static_assert(
    std::same_as<nn::onednn::Elementwise<nn::LeakyRelu<>, float>, nn::reference::Elementwise<nn::LeakyRelu<>, float>>);
static_assert(std::same_as<nn::onednn::Elementwise<nn::Linear, float>, nn::reference::Elementwise<nn::Linear, float>>);

TEST_CASE("activations by oneDNN match the plain loops, also in place and at changing sizes") {
  const auto check = []<class Function>(Function) {
    nn::onednn::State state;
    nn::onednn::Elementwise<Function, float> function;
    for (const std::size_t size : {std::size_t{70}, std::size_t{3}, std::size_t{70}}) {
      dist::Tensor<float> x{dist::Shape{size}};
      for (std::size_t i = 0; i < size; ++i) x[i] = static_cast<float>(i % 13) / 2 - 3;
      dist::Tensor<float> y{x.shape()};
      function.forward(state, x, y);
      dist::Tensor<float> in_place{x};
      function.forward(state, in_place, in_place);
      dist::Tensor<float> dx{x.shape()};
      for (float& element : dx.elements()) element = 2;
      function.input_gradient(state, nn::HasGradientOfOutput<Function> ? y : x, dx, dx);
      for (std::size_t i = 0; i < size; ++i) {
        const double exact = Function::apply(static_cast<double>(x[i]));
        const double gradient = nn::detail::activation_gradient<Function>(
            nn::HasGradientOfOutput<Function> ? exact : static_cast<double>(x[i]), 2.0);
        CHECK(static_cast<double>(y[i]) == doctest::Approx(exact).epsilon(1e-5));
        CHECK(in_place[i] == y[i]);
        CHECK(static_cast<double>(dx[i]) == doctest::Approx(gradient).epsilon(1e-5));
      }
    }
  };
  check(nn::Tanh{});
  check(nn::Gelu{});
  check(nn::GeluTanh{});
  check(nn::Elu<>{});
}

TEST_CASE("Dense by oneDNN matches the plain loops, at changing batch sizes") {
  using Net = nn::Sequential<nn::Input<50>, nn::Dense<33, nn::Relu>, nn::Dense<128, nn::Relu>, nn::Dense<10>>;
  using Narrow = nn::Sequential<nn::Input<1>, nn::Dense<1, nn::Relu>, nn::Dense<3>, nn::Dense<1>>;
  dist_test::check_against<Net, nn::OneDnn, nn::Reference>({64, 1, 0, 3, 64, 17});
  // Rows long enough for a product in two halves, of different lengths.
  using Long = nn::Sequential<nn::Input<4101>, nn::Dense<6, nn::Relu>, nn::Dense<2>>;
  dist_test::check_against<Narrow, nn::OneDnn, nn::Reference>({1, 5, 0, 2});
  dist_test::check_against<Long, nn::OneDnn, nn::Reference>({3, 8, 0, 1});
}

TEST_CASE("kernel gradients of many units, or rows past the caches, match the plain loops, at changing batch sizes") {
  using Wide = nn::Sequential<nn::Input<5>, nn::Dense<600, nn::Relu>, nn::Dense<2>>;
  dist_test::check_against<Wide, nn::OneDnn, nn::Reference>({70, 1, 0, 70, 3});
  using Tall = nn::Sequential<nn::Input<3>, nn::Dense<200, nn::Relu>, nn::Dense<2>>;
  dist_test::check_against<Tall, nn::OneDnn, nn::Reference>({700, 2, 700});  // 560 KB of gradients
}

TEST_CASE("Softmax by oneDNN matches the plain loops, for rows and pixels, at changing batch sizes") {
  using Rows = nn::Sequential<nn::Input<4>, nn::Dense<17>, nn::Softmax>;
  using Pixels = nn::Sequential<nn::Input<4>, nn::Dense<12>, nn::Reshape<2, 2, 3>, nn::Softmax>;
  dist_test::check_against<Rows, nn::OneDnn, nn::Reference>({4, 1, 0, 4});
  dist_test::check_against<Pixels, nn::OneDnn, nn::Reference>({3, 1});
}

TEST_CASE("Conv2D by oneDNN matches the plain loops, at changing batch sizes") {
  using Seed = nn::Sequential<nn::Input<28, 28, 1>, nn::Conv2D<32, 3, nn::Relu>>;
  using Deep =
      nn::Sequential<nn::Input<12, 9, 3>, nn::Conv2D<16, 3, nn::Relu>, nn::Conv2D<32, 3, nn::Relu>, nn::Conv2D<5, 1>>;
  using Strided = nn::Sequential<nn::Input<11, 8, 2>, nn::Conv2D<7, 2, nn::Relu>, nn::Conv2D<6, 3, nn::Linear, 2>>;
  using Padded = nn::Sequential<nn::Input<9, 10, 2>, nn::Conv2D<8, 3, nn::Relu, 1, nn::Same>,
                                nn::Conv2D<4, 2, nn::Relu, 1, nn::Same>, nn::Conv2D<3, 3, nn::Linear, 2, nn::Same>>;
  using Grouped =
      nn::Sequential<nn::Input<9, 10, 4>, nn::Conv2D<8, 3, nn::Relu, 1, nn::Same, nn::GlorotUniform, nn::Zeros, 2>,
                     nn::Conv2D<6, 5, nn::Relu, 2, nn::Pad<2>, nn::GlorotUniform, nn::Zeros, 2>>;
  dist_test::check_against<Grouped, nn::OneDnn, nn::Reference>({3, 1});
  dist_test::check_against<Seed, nn::OneDnn, nn::Reference>({8, 1});
  dist_test::check_against<Deep, nn::OneDnn, nn::Reference>({5, 1, 0, 5, 2});
  dist_test::check_against<Strided, nn::OneDnn, nn::Reference>({3, 1});
  dist_test::check_against<Padded, nn::OneDnn, nn::Reference>({3, 1});
}

TEST_CASE("Conv2D of few pixels matches the plain loops, at changing batch sizes") {
  using Padded =
      nn::Sequential<nn::Input<3, 2, 5>, nn::Conv2D<7, 3, nn::Relu, 1, nn::Same>,
                     nn::Conv2D<6, 2, nn::Tanh, 1, nn::Same>, nn::Conv2D<4, 3, dist_test::Softsign, 2, nn::Same>>;
  using Valid = nn::Sequential<nn::Input<5, 4, 3>, nn::Conv2D<16, 3, nn::Relu>, nn::Conv2D<9, 2, nn::Relu>>;
  using Wide = nn::Sequential<nn::Input<2, 3, 4>, nn::Conv2D<8, 5, nn::Relu, 1, nn::Pad<2>>,
                              nn::Conv2D<3, 4, nn::Linear, 1, nn::Pad<0, 3>>>;
  using OfOnePixel = nn::Sequential<nn::Input<1, 1, 6>, nn::Conv2D<8, 3, nn::Relu, 1, nn::Same>, nn::Conv2D<5, 1>>;
  dist_test::check_against<Padded, nn::OneDnn, nn::Reference>({3, 1, 0, 3});
  dist_test::check_against<Valid, nn::OneDnn, nn::Reference>({2, 5});
  dist_test::check_against<Wide, nn::OneDnn, nn::Reference>({3, 1});
  dist_test::check_against<OfOnePixel, nn::OneDnn, nn::Reference>({4, 1});
}

TEST_CASE("the kernel gradient overwrites taps that only meet padding with 0") {
  using Geometry = nn::Conv2DGeometry<dist::StaticShape<1, 1, 1>, 1, 3, 1, nn::Same, nn::Linear>;
  nn::onednn::State state;
  nn::onednn::Conv2DProducts<Geometry, float> convolution{};
  const std::array x{2.0f, 3.0f};
  const std::array dy{5.0f, 7.0f};
  std::array<float, 9> kernel_gradient{};
  kernel_gradient.fill(std::numeric_limits<float>::quiet_NaN());
  std::array<float, 1> bias_gradient{};
  convolution.parameter_gradients(state, dist::TensorView<const float>{x.data(), {2, 1, 1, 1}},
                                  dist::TensorView<const float>{dy.data(), {2, 1, 1, 1}},
                                  dist::TensorView<float>{kernel_gradient.data(), {3, 3, 1, 1}},
                                  dist::TensorView<float>{bias_gradient.data(), {1}});
  CHECK(kernel_gradient == std::array<float, 9>{0, 0, 0, 0, 2 * 5 + 3 * 7, 0, 0, 0, 0});
  CHECK(bias_gradient[0] == 5 + 7);
}
