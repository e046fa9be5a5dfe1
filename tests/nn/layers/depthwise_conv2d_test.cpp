#include <dist/nn/layers/depthwise_conv2d.hpp>

#include <type_traits>
#include <vector>

#include <dist/nn/onednn/backend.hpp>
#include <dist/nn/reference/backend.hpp>
#include <dist/nn/sequential.hpp>

#include <doctest/doctest.h>

#include "nn/place_layer.hpp"
#include "nn/run_network.hpp"

namespace nn = dist::nn;
using List = std::vector<double>;

TEST_CASE("DepthwiseConv2D applies separate kernels to each channel") {
  using Layer = nn::DepthwiseConv2D<1, nn::Linear, 1, nn::Valid, 2>;
  using In = dist::StaticShape<1, 2, 2>;
  CHECK(std::is_same_v<Layer::On<In>::Output, dist::StaticShape<1, 2, 4>>);
  CHECK(Layer::On<In>::parameters[0].shape == dist::Shape{1, 1, 2, 2});
  CHECK(Layer::On<In>::parameters[1].shape == dist::Shape{4});
  CHECK(Layer::On<In>::name == "depthwise_conv2d");
  dist_test::BoundLayer<Layer, In> layer;
  // Pixels (1, 2) and (3, 4); kernels 1 and 10 for channel 0, 100 and 1000 for channel 1.
  CHECK(layer.forward({1, 2, 3, 4}, {{1, 10, 100, 1000}, {0, 0, 0, 5}}) == List{1, 10, 200, 2005, 3, 30, 400, 4005});
}

TEST_CASE("the fans of DepthwiseConv2D include the channels and the multiplier, as in Keras") {
  using Bound = nn::DepthwiseConv2D<3, nn::Linear, 1, nn::Valid, 2>::On<dist::StaticShape<8, 8, 5>>;
  List kernel(90);
  List expected(90);
  const dist::Shape shape{3, 3, 5, 2};
  Bound::initialize<0>(dist::TensorView<double>{kernel.data(), shape}, dist::RandomStream{1});
  nn::GlorotUniform::fill(dist::TensorView<double>{expected.data(), shape}, nn::Fans{9 * 5, 9 * 2},
                          dist::RandomStream{1});
  CHECK(kernel == expected);
}

TEST_CASE("gradients of DepthwiseConv2D agree with central differences, and oneDNN with the plain loops") {
  using Net = nn::Sequential<nn::Input<5, 6, 3>, nn::DepthwiseConv2D<2, nn::Relu>,
                             nn::DepthwiseConv2D<3, nn::Linear, 2, nn::Same, 2>>;
  dist_test::check_gradients<Net, nn::Reference>(2);
  dist_test::check_against<Net, nn::OneDnn, nn::Reference>({3, 1, 0});
}
