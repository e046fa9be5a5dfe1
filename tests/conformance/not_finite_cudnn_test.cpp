#include <dist/nn/cuda/backend.cuh>

#include <support/fake_cuda/machine.hpp>

#include "conformance/not_finite.hpp"

TEST_CASE("networks with cuDNN propagate non-finite numbers like plain loops") {
  fake_cuda::restart({});
  conformance::check_not_finite<dist::nn::Cuda>();
}
