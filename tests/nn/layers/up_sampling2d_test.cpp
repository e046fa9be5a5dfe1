#include <dist/nn/layers/up_sampling2d.hpp>

#include <type_traits>
#include <vector>

#include <dist/nn/layers/conv2d.hpp>
#include <dist/nn/onednn/backend.hpp>
#include <dist/nn/reference/backend.hpp>
#include <dist/nn/sequential.hpp>

#include <doctest/doctest.h>

#include "nn/place_layer.hpp"
#include "nn/run_network.hpp"

namespace nn = dist::nn;
using List = std::vector<double>;

TEST_CASE("UpSampling2D repeats pixels, and sums the gradients of the copies") {
  using In = dist::StaticShape<1, 2, 2>;
  CHECK(std::is_same_v<nn::UpSampling2D<2>::On<In>::Output, dist::StaticShape<2, 4, 2>>);
  CHECK(nn::UpSampling2D<2>::On<In>::name == "up_sampling2d");
  dist_test::BoundLayer<nn::UpSampling2D<2>, In> layer;
  CHECK(layer.forward({1, 2, 3, 4}, {}) == List{1, 2, 1, 2, 3, 4, 3, 4,  //
                                                1, 2, 1, 2, 3, 4, 3, 4});
  CHECK(layer.backward({1, 2, 3, 4, 5, 6, 7, 8,  //
                        10, 20, 30, 40, 50, 60, 70, 80}) == List{44, 66, 132, 154});
}

TEST_CASE("gradients through UpSampling2D agree with central differences, and oneDNN with the plain loops") {
  using Net = nn::Sequential<nn::Input<3, 2, 2>, nn::Conv2D<3, 2, nn::Tanh, 1, nn::Same>, nn::UpSampling2D<3>,
                             nn::Conv2D<2, 2, nn::Relu>>;
  dist_test::check_gradients<Net, nn::Reference>(2);
  dist_test::check_against<Net, nn::OneDnn, nn::Reference>({3, 1, 0});
}
