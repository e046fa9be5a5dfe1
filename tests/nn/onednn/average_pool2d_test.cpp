#include <dist/nn/onednn/average_pool2d.hpp>

#include <dist/nn/layers/average_pool2d.hpp>
#include <dist/nn/layers/conv2d.hpp>
#include <dist/nn/onednn/backend.hpp>
#include <dist/nn/reference/backend.hpp>
#include <dist/nn/sequential.hpp>

#include <doctest/doctest.h>

#include "nn/run_network.hpp"

namespace nn = dist::nn;

TEST_CASE("AveragePool2D by oneDNN computes what the plain loops compute, at changing batch sizes") {
  using Net = nn::Sequential<nn::Input<8, 9, 2>, nn::Conv2D<16, 2>, nn::AveragePool2D<2>, nn::Conv2D<3, 1>>;
  using Overlapping = nn::Sequential<nn::Input<8, 9, 1>, nn::Conv2D<3, 2>, nn::AveragePool2D<3, 2, nn::Same>>;
  using Padded = nn::Sequential<nn::Input<8, 9, 1>, nn::Conv2D<3, 2>, nn::AveragePool2D<3, 1, nn::Pad<2, 1>>>;
  dist_test::check_against<Net, nn::OneDnn, nn::Reference>({4, 1, 0, 4});
  dist_test::check_against<Overlapping, nn::OneDnn, nn::Reference>({4, 1});
  dist_test::check_against<Padded, nn::OneDnn, nn::Reference>({3});
}
