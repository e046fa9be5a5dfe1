#include <dist/nn/onednn/conv2d_products.hpp>

#include <array>
#include <limits>

#include <dist/core/static_shape.hpp>
#include <dist/core/tensor.hpp>
#include <dist/nn/geometry.hpp>
#include <dist/nn/layers/conv2d.hpp>
#include <dist/nn/onednn/backend.hpp>
#include <dist/nn/onednn/state.hpp>
#include <dist/nn/reference/backend.hpp>
#include <dist/nn/sequential.hpp>

#include <doctest/doctest.h>

#include "nn/own_activations.hpp"
#include "nn/run_network.hpp"

namespace nn = dist::nn;

TEST_CASE("Conv2D of few pixels computes what the plain loops compute, at changing batch sizes") {
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

TEST_CASE("the kernel's gradient is 0 where all images have padding, whatever was there") {
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
