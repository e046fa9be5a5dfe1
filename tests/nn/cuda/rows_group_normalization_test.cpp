#include <dist/nn/cuda/rows.cuh>

#include <dist/nn/cuda/backend.cuh>
#include <dist/nn/layers/conv2d.hpp>
#include <dist/nn/layers/group_normalization.hpp>
#include <dist/nn/reference/backend.hpp>
#include <dist/nn/sequential.hpp>
#include <support/fake_cuda/machine.hpp>

#include <doctest/doctest.h>

#include "nn/run_network.hpp"

namespace nn = dist::nn;

TEST_CASE("GroupNormalization and LayerNormalization on GPUs match the plain loops, at changing batch sizes") {
  // The first needs no input gradient; several lanes sum the groups of the second.
  using Net = nn::Sequential<nn::Input<6, 5, 4>, nn::GroupNormalization<4>, nn::Conv2D<6, 2>, nn::GroupNormalization<3>,
                             nn::Conv2D<3, 2>, nn::LayerNormalization<>, nn::Conv2D<2, 1>>;
  for (const auto schedule : {fake_cuda::Schedule::eager, fake_cuda::Schedule::lazy}) {
    fake_cuda::restart({.schedule = schedule});
    dist_test::check_against<Net, nn::Cuda, nn::Reference>({3, 1, 0, 5});
  }
  dist_test::check_against<Net, nn::Cuda, nn::Reference>({0, 2});
}
