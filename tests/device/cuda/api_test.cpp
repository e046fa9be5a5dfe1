#include <dist/device/cuda/api.hpp>

#include <doctest/doctest.h>

#include <string>
#include <utility>

#include <support/fake_cuda/machine.hpp>
#include <support/what_throws.hpp>

using dist::CudaError;

TEST_CASE("a failed call throws an error with the call, the reason and the source location") {
  fake_cuda::restart({});
  CHECK_NOTHROW(DIST_CUDA_CHECK(cudaSetDevice(0)));
  constexpr int line = __LINE__ + 1;
  const std::string said = support::what_throws<CudaError>([] { DIST_CUDA_CHECK(cudaSetDevice(7)); });
  CHECK(said.find("CUDA refuses 'cudaSetDevice(7)' (cudaErrorInvalidDevice: ") == 0);
  CHECK(said.find("api_test.cpp:" + std::to_string(line)) != std::string::npos);
  CHECK(said.find("nvidia-smi") != std::string::npos);
  CHECK(cudaPeekAtLastError() == cudaSuccess);  // the error is cleared
}

TEST_CASE("an error names the GPU of the call") {
  fake_cuda::Options two;
  two.devices = 2;
  fake_cuda::restart(two);
  REQUIRE(cudaSetDevice(1) == cudaSuccess);
  const auto said_for = [](auto... device) {
    return support::what_throws<CudaError>([&] { dist::cuda::check(cudaErrorInvalidValue, "cudaCall()", device...); });
  };
  CHECK(said_for().find(", on GPU 1 in ") != std::string::npos);  // the thread's GPU
  CHECK(said_for(0).find(", on GPU 0 in ") != std::string::npos);
}

TEST_CASE("the error of an invisible GPU lists the visible ones, and explains them") {
  fake_cuda::Options four;
  four.devices = 4;
  four.visible = "3,1,9,0";
  fake_cuda::restart(four);
  const std::string said = support::what_throws<CudaError>([] { DIST_CUDA_CHECK(cudaSetDevice(2)); });
  CHECK(said.find("sees /gpu:0 (entry '3'), /gpu:1 (entry '1'); CUDA_VISIBLE_DEVICES='3,1,9,0', in which CUDA ignores "
                  "all entries from '9' on") != std::string::npos);
}

TEST_CASE("the error of a process without GPUs gives the reason, a fix, and CPU alternatives") {
  const auto said = [](const fake_cuda::Options& machine) {
    fake_cuda::restart(machine);
    return support::what_throws<dist::NoGpu>([] { DIST_CUDA_CHECK(cudaSetDevice(0)); });
  };
  fake_cuda::Options machine;
  machine.driver = 0;
  const std::string no_driver = said(machine);
  CHECK(no_driver.find("No replica can run on a GPU (no NVIDIA driver was found; cudaErrorInsufficientDriver of "
                       "'cudaSetDevice(0)' in ") == 0);
  CHECK(no_driver.find("Install it") != std::string::npos);
  machine.driver = 11080;
  const std::string old = said(machine);
  CHECK(old.find("it is for CUDA 11.8, the program's runtime is " + std::to_string(CUDART_VERSION / 1000) + ".") !=
        std::string::npos);
  CHECK(old.find("Update the driver, or build with a toolkit for CUDA 11") != std::string::npos);
  machine.driver.reset();
  machine.visible = "-1";
  const std::string hidden = said(machine);
  CHECK(hidden.find("CUDA_VISIBLE_DEVICES='-1'") != std::string::npos);
  CHECK(hidden.find("unset it") != std::string::npos);
  machine.visible.reset();
  machine.devices = 0;
  const std::string none = said(machine);
  CHECK(none.find("CUDA_VISIBLE_DEVICES is not set") != std::string::npos);
  CHECK(none.find("Check the GPUs with nvidia-smi") != std::string::npos);
  for (const std::string& each : {no_driver, old, hidden, none}) {
    CHECK(each.find("OneDevice<Cpu>, Mirrored<ThreadAllReduce>") != std::string::npos);
    CHECK(each.find("api_test.cpp:") != std::string::npos);
  }
  fake_cuda::restart({});
  for (const auto& [code, fix] : {std::pair{cudaErrorStubLibrary, "LD_LIBRARY_PATH"},
                                  {cudaErrorSystemNotReady, "nvidia-fabricmanager"},
                                  {cudaErrorSystemDriverMismatch, "Restart the machine"},
                                  {cudaErrorCompatNotSupportedOnDevice, "cuda-compat"}}) {
    fake_cuda::fail_call("cudaSetDevice", code);
    CHECK(support::what_throws<dist::NoGpu>([] { DIST_CUDA_CHECK(cudaSetDevice(0)); }).find(fix) != std::string::npos);
  }
}

TEST_CASE("a missing kernel image names the GPU's architecture") {
  fake_cuda::restart({});
  for (const cudaError_t code : {cudaErrorNoKernelImageForDevice, cudaErrorUnsupportedPtxVersion}) {
    const std::string said = support::what_throws<dist::NoKernelImage>([&] { dist::cuda::check(code, "launch", 0); });
    CHECK(said.find("on GPU 0 in ") != std::string::npos);
    CHECK(said.find("which is sm_90") != std::string::npos);
    CHECK(said.find("nvcc -arch=sm_90") != std::string::npos);
    CHECK(said.find("OneDevice<Cpu>") != std::string::npos);
  }
}

TEST_CASE("any call without memory throws OutOfMemory with the free memory") {
  fake_cuda::Options small;
  small.memory = 1000;
  fake_cuda::restart(small);
  const std::string said = support::what_throws<dist::OutOfMemory>(
      [] { dist::cuda::check(cudaErrorMemoryAllocation, "cudaStreamCreateWithFlags", 0); });
  CHECK(said.find("CUDA refuses 'cudaStreamCreateWithFlags' (cudaErrorMemoryAllocation: ") == 0);
  CHECK(said.find("on GPU 0 in ") != std::string::npos);
  CHECK(said.find("where 1000 of 1000 bytes are free") != std::string::npos);
}

TEST_CASE("a lost GPU names its last work") {
  fake_cuda::restart({});
  dist::cuda::note_work(0, dist::cuda::kernel_work<int, float>);
  fake_cuda::break_context(cudaErrorIllegalAddress);
  const std::string said =
      support::what_throws<dist::GpuLost>([] { dist::cuda::check(cudaErrorIllegalAddress, "cudaStreamQuery", 0); });
  CHECK(said.find("on GPU 0 in ") != std::string::npos);
  CHECK(said.find("the last work submitted to this GPU is a kernel (int, float)") != std::string::npos);
  CHECK(said.find("Start the process again") != std::string::npos);
  fake_cuda::restart({});
}

TEST_CASE("kernel faults are fatal, other errors are not") {
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

TEST_CASE("a forgotten error is not reported later") {
  fake_cuda::restart({});
  dist::cuda::forget(cudaSetDevice(7));
  CHECK(cudaPeekAtLastError() == cudaSuccess);
}
