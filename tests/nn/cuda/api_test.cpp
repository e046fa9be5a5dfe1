#include <dist/nn/cuda/api.hpp>

#include <doctest/doctest.h>

#include <support/fake_cuda/machine.hpp>

namespace nn = dist::nn;

TEST_CASE("a failed cuBLAS call throws an error with its text and the GPU") {
  fake_cuda::restart({.devices = 2});
  REQUIRE(cudaSetDevice(1) == cudaSuccess);
  CHECK_NOTHROW(nn::cuda::check(CUBLAS_STATUS_SUCCESS, "call"));
  try {
    nn::cuda::check(CUBLAS_STATUS_ALLOC_FAILED, "cublasCreate(&handle)", "file.hpp", 7);
    FAIL("nothing was thrown");
  } catch (const nn::CuBlasError& error) {
    CHECK(error.status() == CUBLAS_STATUS_ALLOC_FAILED);
    const std::string_view said = error.what();
    CHECK(said.find("cuBLAS refuses 'cublasCreate(&handle)' on GPU 1 (") != said.npos);
    CHECK(said.find("CUBLAS_STATUS_ALLOC_FAILED: the resource allocation failed, in file.hpp:7") != said.npos);
    CHECK(said.find("Make the model or the batch smaller") != said.npos);
  }
}

TEST_CASE("a failed cuDNN call throws an error with its text and the GPU") {
  fake_cuda::restart({.devices = 2});
  REQUIRE(cudaSetDevice(1) == cudaSuccess);
  CHECK_NOTHROW(nn::cuda::check(CUDNN_STATUS_SUCCESS, "call"));
  try {
    nn::cuda::check(CUDNN_STATUS_EXECUTION_FAILED, "cudnnCreate(&handle)", "file.hpp", 7);
    FAIL("nothing was thrown");
  } catch (const nn::CuDnnError& error) {
    CHECK(error.status() == CUDNN_STATUS_EXECUTION_FAILED);
    const std::string_view said = error.what();
    CHECK(said.find("cuDNN refuses 'cudnnCreate(&handle)' on GPU 1 (") != said.npos);
    CHECK(said.find("CUDNN_STATUS_EXECUTION_FAILED, in file.hpp:7") != said.npos);
  }
}
