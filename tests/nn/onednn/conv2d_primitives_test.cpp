#include <dist/nn/onednn/conv2d_primitives.hpp>

#include <dist/nn/layers/conv2d.hpp>
#include <dist/nn/onednn/backend.hpp>
#include <dist/nn/reference/backend.hpp>
#include <dist/nn/sequential.hpp>

#include <doctest/doctest.h>

#include "nn/run_network.hpp"

namespace nn = dist::nn;

TEST_CASE("Conv2D by oneDNN computes what the plain loops compute, at changing batch sizes") {
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
