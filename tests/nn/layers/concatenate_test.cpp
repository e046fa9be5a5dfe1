#include <dist/nn/layers/concatenate.hpp>

#include <type_traits>
#include <vector>

#include <dist/core/static_shape.hpp>
#include <dist/nn/layers/activate.hpp>
#include <dist/nn/layers/conv2d.hpp>
#include <dist/nn/layers/dense.hpp>
#include <dist/nn/layers/pool2d.hpp>
#include <dist/nn/layers/views.hpp>
#include <dist/nn/onednn/backend.hpp>
#include <dist/nn/reference/backend.hpp>
#include <dist/nn/sequential.hpp>

#include <doctest/doctest.h>

#include "nn/place_layer.hpp"
#include "nn/run_network.hpp"

namespace nn = dist::nn;
using List = std::vector<double>;

TEST_CASE("Concatenate joins outputs along the last axis") {
  using In = dist::StaticShape<2, 2>;
  using Layer = nn::Concatenate<nn::ReLU, nn::Sequential<>>;
  CHECK(std::is_same_v<Layer::On<In>::Output, dist::StaticShape<2, 4>>);
  dist_test::BoundLayer<Layer, In> layer;
  CHECK(layer.forward({1, -2, -3, 4}) == List{1, 0, 1, -2, 0, 4, -3, 4});
  CHECK(layer.backward({1, 10, 100, 1000, 2, 20, 200, 2000}) == List{101, 1000, 200, 2020});
}

TEST_CASE("gradients of Concatenate agree with central differences, and oneDNN with the plain loops") {
  using Inception =
      nn::Concatenate<nn::Conv2D<2, 1, nn::Relu>, nn::Conv2D<3, 3, nn::Linear, 1, nn::Same>,
                      nn::Sequential<nn::AveragePool2D<3, 1, nn::Same>, nn::Conv2D<1, 1>>, nn::Sequential<>>;
  using Net = nn::Sequential<nn::Input<5, 4, 1>, nn::Conv2D<2, 2>, Inception, nn::Flatten, nn::Dense<2>>;
  CHECK(std::is_same_v<Net::Output<1>, dist::StaticShape<4, 3, 8>>);
  for (const std::size_t rows : {std::size_t{0}, std::size_t{1}, std::size_t{3}}) {
    CAPTURE(rows);
    dist_test::check_gradients<Net, nn::Reference>(rows);
  }
  dist_test::check_against<Net, nn::OneDnn, nn::Reference>({3, 1, 0, 4});
}
