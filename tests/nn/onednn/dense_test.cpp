#include <dist/nn/onednn/dense.hpp>

#include <dist/nn/layers/dense.hpp>
#include <dist/nn/onednn/backend.hpp>
#include <dist/nn/reference/backend.hpp>
#include <dist/nn/sequential.hpp>

#include <doctest/doctest.h>

#include "nn/run_network.hpp"

namespace nn = dist::nn;

TEST_CASE("Dense by oneDNN computes what the plain loops compute, at changing batch sizes") {
  using Net = nn::Sequential<nn::Input<50>, nn::Dense<33, nn::Relu>, nn::Dense<128, nn::Relu>, nn::Dense<10>>;
  using Narrow = nn::Sequential<nn::Input<1>, nn::Dense<1, nn::Relu>, nn::Dense<3>, nn::Dense<1>>;
  dist_test::check_against<Net, nn::OneDnn, nn::Reference>({64, 1, 0, 3, 64, 17});
  // Rows so long that the product is made in two halves, of different lengths.
  using Long = nn::Sequential<nn::Input<4101>, nn::Dense<6, nn::Relu>, nn::Dense<2>>;
  dist_test::check_against<Narrow, nn::OneDnn, nn::Reference>({1, 5, 0, 2});
  dist_test::check_against<Long, nn::OneDnn, nn::Reference>({3, 8, 0, 1});
}
