#include <dist/nn/cudnn/attention.cuh>

#include <dist/nn/cudnn/backend.cuh>
#include <dist/nn/layers/dense.hpp>
#include <dist/nn/layers/flatten.hpp>
#include <dist/nn/layers/multi_head_attention.hpp>
#include <dist/nn/reference/backend.hpp>
#include <dist/nn/sequential.hpp>
#include <support/fake_cuda/machine.hpp>

#include <doctest/doctest.h>

#include "nn/run_network.hpp"

namespace nn = dist::nn;

TEST_CASE("attention on GPUs computes what the plain loops compute: to all elements, then to the past") {
  using Net = nn::Sequential<nn::Input<5, 4>, nn::MultiHeadAttention<2, 3>,
                             nn::MultiHeadAttention<3, 2, nn::AttendToPast>, nn::Flatten, nn::Dense<2>>;
  for (const auto schedule : {fake_cuda::Schedule::eager, fake_cuda::Schedule::lazy}) {
    fake_cuda::restart({.schedule = schedule});
    dist_test::check_against<Net, nn::CuDnn, nn::Reference>({3, 1, 0, 4});
  }
}
