#include <dist/nn/cuda/backend.cuh>

#include <support/fake_cuda/machine.hpp>

#include "conformance/not_finite.hpp"

TEST_CASE("numbers that are not finite come out of networks by cuDNN as by plain loops") {
  fake_cuda::restart({});
  conformance::check_not_finite<dist::nn::Cuda>();
}
