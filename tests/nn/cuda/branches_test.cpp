#include <dist/nn/activations/smooth.hpp>
#include <dist/nn/cuda/backend.cuh>
#include <dist/nn/layers/activate.hpp>
#include <dist/nn/layers/add.hpp>
#include <dist/nn/layers/concatenate.hpp>
#include <dist/nn/layers/conv2d.hpp>
#include <dist/nn/layers/dense.hpp>
#include <dist/nn/layers/multiply.hpp>
#include <dist/nn/layers/repeat.hpp>
#include <dist/nn/layers/views.hpp>
#include <dist/nn/reference/backend.hpp>
#include <dist/nn/sequential.hpp>
#include <support/fake_cuda/machine.hpp>

#include <doctest/doctest.h>

#include "nn/run_network.hpp"

namespace nn = dist::nn;

TEST_CASE("sums, products and concatenations of branches on a GPU match the plain loops") {
  using Body = nn::Sequential<nn::Conv2D<4, 3, nn::Relu, 2, nn::Same>, nn::Conv2D<4, 3, nn::Linear, 1, nn::Same>>;
  using Net = nn::Sequential<nn::Input<7, 5, 1>, nn::Conv2D<3, 2, nn::Linear, 1, nn::Same>,
                             nn::Residual<Body, nn::Conv2D<4, 1, nn::Linear, 2>>,
                             nn::Multiply<nn::Conv2D<4, 1, nn::Silu>, nn::Sequential<>>,
                             nn::Concatenate<nn::ReLU, nn::Conv2D<2, 1>, nn::Sequential<>>, nn::Flatten, nn::Dense<2>>;
  for (const auto schedule : {fake_cuda::Schedule::eager, fake_cuda::Schedule::lazy}) {
    fake_cuda::restart({.schedule = schedule});
    dist_test::check_against<Net, nn::Cuda, nn::Reference>({3, 1, 0, 4});
  }
}

TEST_CASE("blocks of a Repeat on a GPU match the plain loops") {
  using Net =
      nn::Sequential<nn::Input<6>, nn::Repeat<3, nn::Residual<nn::Sequential<nn::Dense<5, nn::Relu>, nn::Dense<6>>>>,
                     nn::Dense<2>>;
  for (const auto schedule : {fake_cuda::Schedule::eager, fake_cuda::Schedule::lazy}) {
    fake_cuda::restart({.schedule = schedule});
    dist_test::check_against<Net, nn::Cuda, nn::Reference>({3, 1, 0, 4});
  }
}
