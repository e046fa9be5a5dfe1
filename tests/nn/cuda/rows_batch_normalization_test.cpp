#include <dist/nn/cuda/rows.cuh>

#include <dist/comm/cuda/policies.cuh>
#include <dist/nn/cuda/backend.cuh>
#include <dist/nn/reference/backend.hpp>
#include <dist/strategy/mirrored.hpp>
#include <support/fake_cuda/machine.hpp>

#include <doctest/doctest.h>

#include "nn/run_normalized.hpp"

namespace nn = dist::nn;

TEST_CASE_TEMPLATE("BatchNormalization on GPUs matches the plain loops, with and without rows", Statistics,
                   nn::PerReplicaStatistics, nn::SynchronizedStatistics) {
  dist::Mirrored<dist::ThreadAllReduce> host{2};
  using Net = dist_test::NormalizedNet<Statistics>;
  const auto expected = dist_test::run_normalized<Net, nn::Reference, double>(host);
  for (const auto schedule : {fake_cuda::Schedule::eager, fake_cuda::Schedule::lazy}) {
    fake_cuda::restart({.devices = 2, .schedule = schedule});
    dist::Mirrored<dist::DirectAllReduce, dist::Cuda> gpus{2};
    CHECK(dist_test::difference(dist_test::run_normalized<Net, nn::Cuda, float>(gpus), expected) < 1e-5);
  }
}
