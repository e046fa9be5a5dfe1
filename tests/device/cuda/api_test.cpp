#include <dist/device/cuda/api.hpp>

#include <doctest/doctest.h>

#include <string>

#include <support/fake_cuda/machine.hpp>
#include <support/what_throws.hpp>

using dist::CudaError;

TEST_CASE("a call that fails throws what it was, why, and where") {
  fake_cuda::restart({});
  CHECK_NOTHROW(DIST_CUDA_CHECK(cudaSetDevice(0)));
  constexpr int line = __LINE__ + 1;
  const std::string said = support::what_throws<CudaError>([] { DIST_CUDA_CHECK(cudaSetDevice(7)); });
  CHECK(said.find("CUDA refuses 'cudaSetDevice(7)' (cudaErrorInvalidDevice: ") == 0);
  CHECK(said.find("api_test.cpp:" + std::to_string(line)) != std::string::npos);
  CHECK(said.find("nvidia-smi") != std::string::npos);
  CHECK(cudaPeekAtLastError() == cudaSuccess);  // the error is told once
}

TEST_CASE("faults of kernels are fatal, other errors are not") {
  fake_cuda::restart({});
  for (const cudaError_t fatal : {cudaErrorIllegalAddress, cudaErrorLaunchFailure, cudaErrorECCUncorrectable})
    CHECK(CudaError::is_fatal(fatal));
  for (const cudaError_t usual : {cudaErrorInvalidValue, cudaErrorMemoryAllocation, cudaErrorNotReady})
    CHECK_FALSE(CudaError::is_fatal(usual));
  fake_cuda::break_context(cudaErrorIllegalAddress);
  try {
    DIST_CUDA_CHECK(cudaSetDevice(0));
    FAIL("nothing was thrown");
  } catch (const CudaError& error) {
    CHECK(error.code() == cudaErrorIllegalAddress);
    CHECK(error.is_fatal());
    CHECK(std::string(error.what()).find("compute-sanitizer") != std::string::npos);
  }
  fake_cuda::restart({});
}

TEST_CASE("an error that is forgotten is asked for by nobody") {
  fake_cuda::restart({});
  dist::cuda::forget(cudaSetDevice(7));
  CHECK(cudaPeekAtLastError() == cudaSuccess);
}
