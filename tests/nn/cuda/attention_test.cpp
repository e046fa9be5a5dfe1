#include <dist/nn/cuda/attention.cuh>

#include <dist/nn/cuda/backend.cuh>
#include <dist/nn/layers/dense.hpp>
#include <dist/nn/layers/multi_head_attention.hpp>
#include <dist/nn/layers/views.hpp>
#include <dist/nn/reference/backend.hpp>
#include <dist/nn/sequential.hpp>
#include <support/fake_cuda/machine.hpp>

#include <doctest/doctest.h>

#include "nn/attention_reach.hpp"
#include "nn/run_network.hpp"

namespace nn = dist::nn;

TEST_CASE("attention on GPUs matches the plain loops, to all elements and to the past") {
  using Net = nn::Sequential<nn::Input<5, 4>, nn::MultiHeadAttention<2, 3>,
                             nn::MultiHeadAttention<3, 2, nn::AttendToPast>, nn::Flatten, nn::Dense<2>>;
  for (const auto schedule : {fake_cuda::Schedule::eager, fake_cuda::Schedule::lazy}) {
    fake_cuda::restart({.schedule = schedule});
    dist_test::check_against<Net, nn::Cuda, nn::Reference>({3, 1, 0, 4});
  }
}

namespace {
struct LikeLlama : nn::AttendToPast {
  static constexpr std::size_t key_heads = 2;
  using Positions = nn::RotaryPositions<>;
};
}  // namespace

TEST_CASE("attention with grouped heads and rotary positions on GPUs matches the plain loops") {
  using Net = nn::Sequential<nn::Input<5, 4>, nn::MultiHeadAttention<4, 2, LikeLlama, nn::GlorotUniform, nn::NoBias>,
                             nn::Flatten, nn::Dense<2>>;
  fake_cuda::restart({});
  dist_test::check_against<Net, nn::Cuda, nn::Reference>({3, 1, 0, 4});
}

TEST_CASE("elements outside the reach of attention have no effect, not even a NaN, and no gradient") {
  fake_cuda::restart({});
  dist_test::Bench<nn::Cuda> bench;
  nn::cuda::State state{bench.queue()};
  dist_test::check_attention_reach<nn::Cuda>(bench, state);
}
