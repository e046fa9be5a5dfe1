#include <dist/nn/layers/conv2d_transpose.hpp>

#include <type_traits>
#include <vector>

#include <dist/nn/activations/smooth.hpp>
#include <dist/nn/initializer.hpp>
#include <dist/nn/onednn/backend.hpp>
#include <dist/nn/reference/backend.hpp>
#include <dist/nn/sequential.hpp>

#include <doctest/doctest.h>

#include "nn/place_layer.hpp"
#include "nn/run_network.hpp"

namespace nn = dist::nn;
using List = std::vector<double>;

TEST_CASE("Conv2DTranspose adds a scaled kernel for each pixel") {
  using Layer = nn::Conv2DTranspose<1, 2, nn::Relu>;
  using In = dist::StaticShape<1, 2, 1>;
  CHECK(std::is_same_v<Layer::On<In>::Output, dist::StaticShape<2, 3, 1>>);
  CHECK(Layer::On<In>::name == "conv2d_transpose");
  dist_test::BoundLayer<Layer, In> layer;
  CHECK(layer.forward({2, 3}, {{1, 10, 100, -1000}, {0.5}}) == List{2.5, 20 + 3 + 0.5, 30.5,  //
                                                                    200.5, 0, 0});
  CHECK(layer.backward({1, 2, 3, 4, 5, 6}) == List{1 + 20 + 400, 2 + 30});
  CHECK(layer.gradients[0] == List{2 * 1 + 3 * 2, 2 * 2 + 3 * 3, 2 * 4, 0});
  CHECK(layer.gradients[1] == List{1 + 2 + 3 + 4});
}

TEST_CASE("the kernel of Conv2DTranspose is [window, window, filters, channels], and its fans are Keras'") {
  using Bound = nn::Conv2DTranspose<4, 3, nn::Linear, 2, nn::Same>::On<dist::StaticShape<5, 6, 2>>;
  CHECK(std::is_same_v<Bound::Output, dist::StaticShape<10, 12, 4>>);
  const dist::Shape shape{3, 3, 4, 2};
  CHECK(Bound::parameters[0].shape == shape);
  CHECK(Bound::parameters[1].shape == dist::Shape{4});
  List kernel(72);
  List expected(72);
  Bound::initialize<0>(dist::TensorView<double>{kernel.data(), shape}, dist::RandomStream{1});
  nn::GlorotUniform::fill(dist::TensorView<double>{expected.data(), shape}, nn::Fans{9 * 4, 9 * 2},
                          dist::RandomStream{1});
  CHECK(kernel == expected);
}

TEST_CASE("gradients of Conv2DTranspose agree with central differences, and oneDNN with the plain loops") {
  using Net = nn::Sequential<nn::Input<3, 4, 2>, nn::Conv2DTranspose<3, 3, nn::Tanh, 2, nn::Same>,
                             nn::Conv2DTranspose<2, 2, nn::Silu, 1, nn::Valid, nn::GlorotUniform, nn::NoBias>,
                             nn::Conv2DTranspose<2, 1, nn::Relu, 2>>;
  dist_test::check_gradients<Net, nn::Reference>(2);
  dist_test::check_against<Net, nn::OneDnn, nn::Reference>({3, 1, 0});
}
