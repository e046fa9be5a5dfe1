#include <dist/nn/onednn/softmax.hpp>

#include <dist/nn/layers/dense.hpp>
#include <dist/nn/layers/softmax.hpp>
#include <dist/nn/layers/views.hpp>
#include <dist/nn/onednn/backend.hpp>
#include <dist/nn/reference/backend.hpp>
#include <dist/nn/sequential.hpp>

#include <doctest/doctest.h>

#include "nn/run_network.hpp"

namespace nn = dist::nn;

TEST_CASE("Softmax by oneDNN computes what the plain loops compute, of rows and of pixels, at changing batch sizes") {
  using Rows = nn::Sequential<nn::Input<4>, nn::Dense<17>, nn::Softmax>;
  using Pixels = nn::Sequential<nn::Input<4>, nn::Dense<12>, nn::Reshape<2, 2, 3>, nn::Softmax>;
  dist_test::check_against<Rows, nn::OneDnn, nn::Reference>({4, 1, 0, 4});
  dist_test::check_against<Pixels, nn::OneDnn, nn::Reference>({3, 1});
}
