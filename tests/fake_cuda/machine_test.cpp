#include "gpu.hpp"

#include <cstdlib>
#include <cstring>
#include <set>
#include <string>
#include <thread>

#include <support/fake_cuda/machines.hpp>
#include <support/stderr_of.hpp>

using testing::stderr_of;

namespace {

__global__ void nothing() {}

/// Returns the machine that the environment describes.
std::string described(const char* text) {
  setenv("DIST_FAKE_CUDA", text, 1);
  const std::string machine = fake_cuda::to_string(fake_cuda::from_environment());
  unsetenv("DIST_FAKE_CUDA");
  return machine;
}

}  // namespace

TEST_CASE("the environment configures the machine") {
  CHECK(described("1 eager") == "1 GPU, eager");
  CHECK(described("4 lazy") == "4 GPUs, lazy");
  CHECK(described("2 random 17") == "2 GPUs, random 17");
  CHECK(described("0 eager") == "0 GPUs, eager");
  for (const char* const wrong : {"", "two lazy", "2", "2 later", "-1 lazy"})
    CHECK(stderr_of([&] { static_cast<void>(described(wrong)); }).says("DIST_FAKE_CUDA"));
  unsetenv("DIST_FAKE_CUDA");
  CHECK(fake_cuda::machines().size() == 15);
  setenv("DIST_FAKE_CUDA", "2 lazy", 1);
  REQUIRE(fake_cuda::machines().size() == 1);
  CHECK(fake_cuda::to_string(fake_cuda::machines()[0]) == "2 GPUs, lazy");
  unsetenv("DIST_FAKE_CUDA");
}

TEST_CASE("devices are counted, selected per thread, and described") {
  fake_cuda::Options two;
  two.devices = 2;
  fake_cuda::restart(two);
  int value = -1;
  CHECK(cudaGetDeviceCount(&value) == cudaSuccess);
  CHECK(value == 2);
  REQUIRE(cudaSetDevice(1) == cudaSuccess);
  std::thread{[] {
    int device = -1;
    CHECK(cudaGetDevice(&device) == cudaSuccess);
    CHECK(device == 0);
  }}.join();
  CHECK(cudaGetDevice(&value) == cudaSuccess);
  CHECK(value == 1);
  CHECK(cudaSetDevice(2) == cudaErrorInvalidDevice);
  CHECK(cudaSetDevice(-1) == cudaErrorInvalidDevice);
  CHECK(cudaDeviceGetAttribute(&value, cudaDevAttrMultiProcessorCount, 1) == cudaSuccess);
  CHECK(value == 4);
  CHECK(cudaDeviceGetAttribute(&value, cudaDevAttrMultiProcessorCount, 2) == cudaErrorInvalidDevice);
  char bus[32];
  CHECK(cudaDeviceGetPCIBusId(bus, 32, 1) == cudaSuccess);
  CHECK(std::string(bus) == "FFFF:01:00.0");

  two.devices = 0;
  fake_cuda::restart(two);
  value = 7;
  CHECK(cudaGetDeviceCount(&value) == cudaErrorNoDevice);
  CHECK(value == 7);  // unchanged, as with a real runtime
}

TEST_CASE("selecting or using a GPU creates its context but querying it does not") {
  fake_cuda::Options three;
  three.devices = 3;
  fake_cuda::restart(three);
  int value = -1;
  char bus[32];
  REQUIRE(cudaGetDeviceCount(&value) == cudaSuccess);
  REQUIRE(cudaGetDevice(&value) == cudaSuccess);
  REQUIRE(cudaDeviceGetPCIBusId(bus, 32, 0) == cudaSuccess);
  REQUIRE(cudaDeviceCanAccessPeer(&value, 0, 1) == cudaSuccess);
  CHECK(fake_cuda::contexts().empty());
  REQUIRE(cudaSetDevice(2) == cudaSuccess);
  CHECK(fake_cuda::contexts() == std::set<int>{2});
  std::thread{[] { static_cast<void>(gpu::stream()); }}.join();
  CHECK(fake_cuda::contexts() == std::set<int>{0, 2});
  fake_cuda::restart(three);
  CHECK(fake_cuda::contexts().empty());
}

TEST_CASE("CUDA_VISIBLE_DEVICES orders and hides GPUs, an invalid entry hides the rest, and a duplicate hides all") {
  const auto visible = [](const char* variable) {
    fake_cuda::Options four;
    four.devices = 4;
    four.visible = variable;
    fake_cuda::restart(four);
    CHECK(std::string(std::getenv("CUDA_VISIBLE_DEVICES")) == variable);
    std::string seen;
    int count = 0;
    char bus[32];
    if (cudaGetDeviceCount(&count) == cudaErrorNoDevice) CHECK(cudaSetDevice(0) == cudaErrorNoDevice);
    for (int device = 0; device < count; ++device) {
      REQUIRE(cudaDeviceGetPCIBusId(bus, 32, device) == cudaSuccess);
      seen += bus[6];  // from "FFFF:03:00.0"
    }
    return seen;
  };
  CHECK(visible("3,1") == "31");
  CHECK(visible("GPU-2,0") == "20");
  CHECK(visible("1,4,0") == "1");
  CHECK(visible("1,GPU-x,0") == "1");
  CHECK(visible("0,-1,1") == "0");
  CHECK(visible("-1").empty());
  CHECK(visible("").empty());
  CHECK(visible("1,1").empty());
  fake_cuda::restart({});
  CHECK(std::getenv("CUDA_VISIBLE_DEVICES") == nullptr);
}

TEST_CASE("without a driver, or with one that is too old, only versions are available") {
  fake_cuda::Options machine;
  for (const int driver : {0, CUDART_VERSION - 1000}) {
    machine.driver = driver;
    fake_cuda::restart(machine);
    int value = 7;
    CHECK(cudaGetDeviceCount(&value) == cudaErrorInsufficientDriver);
    CHECK(value == 7);
    CHECK(cudaSetDevice(0) == cudaErrorInsufficientDriver);
    CHECK(cudaGetLastError() == cudaErrorInsufficientDriver);
    CHECK(cudaDriverGetVersion(&value) == cudaSuccess);
    CHECK(value == driver);
    CHECK(cudaRuntimeGetVersion(&value) == cudaSuccess);
    CHECK(value == CUDART_VERSION);
  }
  machine.driver = CUDART_VERSION / 1000 * 1000;  // same major version
  fake_cuda::restart(machine);
  CHECK(cudaSetDevice(0) == cudaSuccess);
}

TEST_CASE("a test can make calls fail") {
  fake_cuda::restart({});
  fake_cuda::fail_call("cudaMalloc", cudaErrorMemoryAllocation, 2);
  void* memory = nullptr;
  CHECK(cudaMalloc(&memory, 4) == cudaSuccess);
  CHECK(cudaMalloc(&memory, 4) == cudaErrorMemoryAllocation);
  CHECK(cudaPeekAtLastError() == cudaErrorMemoryAllocation);
  CHECK(cudaMalloc(&memory, 4) == cudaSuccess);
  CHECK(cudaGetLastError() == cudaErrorMemoryAllocation);
  CHECK(cudaGetLastError() == cudaSuccess);
  CHECK(std::string(cudaGetErrorName(cudaErrorMemoryAllocation)) == "cudaErrorMemoryAllocation");
}

TEST_CASE("every call fails after a kernel fault") {
  fake_cuda::restart({});
  const cudaStream_t stream = gpu::stream();
  fake_cuda::break_context(cudaErrorIllegalAddress);
  void* memory = nullptr;
  CHECK(cudaMalloc(&memory, 4) == cudaErrorIllegalAddress);
  CHECK(cudaStreamSynchronize(stream) == cudaErrorIllegalAddress);
  CHECK(cudaGetLastError() == cudaErrorIllegalAddress);
  CHECK(cudaGetLastError() == cudaErrorIllegalAddress);
  fake_cuda::restart({});
  CHECK(cudaMalloc(&memory, 4) == cudaSuccess);
  CHECK(cudaGetLastError() == cudaSuccess);
}

TEST_CASE("calls and live objects are counted") {
  fake_cuda::restart({});
  CHECK(fake_cuda::live() == fake_cuda::Live{});
  const cudaStream_t stream = gpu::stream();
  const cudaEvent_t event = gpu::event();
  int* const memory = gpu::memory<int>(4);
  int* const host = gpu::pinned<int>(4);
  CHECK(fake_cuda::live() == fake_cuda::Live{1, 1, 0, 1, 1});
  gpu::launch(stream, dim3{1}, dim3{1}, &nothing);
  gpu::copy(memory, host, 4, stream);
  gpu::synchronize(stream);
  const fake_cuda::Counts counts = fake_cuda::counts();
  CHECK(counts.kernels == 1);
  CHECK(counts.copies == 1);
  CHECK(counts.host_waits == 1);
  CHECK(counts.operations_run == 2);
  REQUIRE(cudaStreamDestroy(stream) == cudaSuccess);
  REQUIRE(cudaEventDestroy(event) == cudaSuccess);
  REQUIRE(cudaFree(memory) == cudaSuccess);
  REQUIRE(cudaFreeHost(host) == cudaSuccess);
  CHECK(fake_cuda::live() == fake_cuda::Live{});
}

TEST_CASE("device functions are rejected on the host") {
  CHECK(
      stderr_of([] { static_cast<void>(unsigned{threadIdx.x}); }).says("a function of kernels is called on the host"));
  CHECK(stderr_of([] { __syncthreads(); }).says("a function of kernels is called on the host"));
}
