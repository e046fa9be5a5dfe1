#include <dist/nn/layers/group_normalization.hpp>

#include <dist/nn/layers/conv2d.hpp>
#include <dist/nn/layers/dense.hpp>
#include <dist/nn/layers/views.hpp>
#include <dist/nn/onednn/backend.hpp>
#include <dist/nn/reference/backend.hpp>
#include <dist/nn/sequential.hpp>

#include <doctest/doctest.h>

#include "nn/run_network.hpp"

namespace nn = dist::nn;

// Values computed by hand are in the tests of each layer. The layers before the normalisation require its input
// gradient.
TEST_CASE("gradients of row normalisations agree with central differences, and oneDNN with the plain loops") {
  using Layer = nn::Sequential<nn::Input<5>, nn::Dense<7>, nn::LayerNormalization<>, nn::Dense<3>>;
  using Pixels = nn::Sequential<nn::Input<4, 3, 1>, nn::Conv2D<4, 2>, nn::LayerNormalization<>, nn::Conv2D<2, 2>>;
  using Groups = nn::Sequential<nn::Input<4, 3, 1>, nn::Conv2D<6, 2>, nn::GroupNormalization<3>, nn::Conv2D<2, 2>>;
  using First = nn::Sequential<nn::Input<4, 3, 2>, nn::GroupNormalization<1>, nn::Flatten, nn::Dense<2>>;
  for (const std::size_t rows : {std::size_t{0}, std::size_t{1}, std::size_t{3}}) {
    CAPTURE(rows);
    dist_test::check_gradients<Layer, nn::Reference>(rows);
    dist_test::check_gradients<Pixels, nn::Reference>(rows);
    dist_test::check_gradients<Groups, nn::Reference>(rows);
    dist_test::check_gradients<First, nn::Reference>(rows);
  }
  dist_test::check_against<Groups, nn::OneDnn, nn::Reference>({3, 1, 0});
}
