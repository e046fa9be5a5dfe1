#include <dist/nn/cuda/pool2d.cuh>

#include <dist/nn/cuda/backend.cuh>
#include <dist/nn/layers/conv2d.hpp>
#include <dist/nn/layers/pool2d.hpp>
#include <dist/nn/reference/backend.hpp>
#include <dist/nn/sequential.hpp>
#include <support/fake_cuda/machine.hpp>

#include <doctest/doctest.h>

#include "nn/run_network.hpp"

namespace nn = dist::nn;

TEST_CASE("AveragePool2D on GPUs matches the plain loops, at changing batch sizes") {
  // Windows that overlap and reach over the border, windows that skip pixels, and one of the size of the image.
  using Net =
      nn::Sequential<nn::Input<9, 12, 1>, nn::Conv2D<3, 2>, nn::AveragePool2D<3, 2, nn::Same>,
                     nn::AveragePool2D<2, 1, nn::Pad<1, 0>>, nn::AveragePool2D<3, 1, nn::Pad<1>, nn::CountPadding>,
                     nn::AveragePool2D<1, 2>, nn::GlobalAveragePool2D>;
  for (const auto schedule : {fake_cuda::Schedule::eager, fake_cuda::Schedule::lazy}) {
    fake_cuda::restart({.schedule = schedule});
    dist_test::check_against<Net, nn::Cuda, nn::Reference>({4, 1, 0, 4});
  }
}
