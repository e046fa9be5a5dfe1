// Tests the runtime functions of nvcc's host code by direct calls. gates/nvcc/smoke.cu tests nvcc's own host code.
#include <support/fake_cuda/twin_of.hpp>

#include <cstddef>
#include <string>
#include <vector>

#include <support/fake_cuda/machines.hpp>
#include <support/stderr_of.hpp>
#include "gpu.hpp"

extern "C" {
void** __cudaRegisterFatBinary(void*);
void __cudaRegisterFatBinaryEnd(void**);
void __cudaUnregisterFatBinary(void**);
void __cudaRegisterFunction(void**, const char*, char*, const char*, int, uint3*, uint3*, dim3*, dim3*, int*);
cudaError_t __cudaPopCallConfiguration(dim3*, dim3*, std::size_t*, void*);
cudaError_t __cudaGetKernel(cudaKernel_t*, const void*);
cudaError_t __cudaLaunchKernel(cudaKernel_t, dim3, dim3, void**, std::size_t, cudaStream_t);
}

using testing::Ending;
using testing::stderr_of;

namespace {

struct Pair {
  char letter;
  int number;
};
__global__ void put_pair(Pair pair, int* to, double factor) {
  to[threadIdx.x] = pair.letter + static_cast<int>(pair.number * factor);
}

const char stub = 0, other_stub = 0;  // their addresses stand for nvcc's functions

/// Registers and unregisters kernels like objects of nvcc do when the program starts and ends.
class Binary {
 public:
  Binary() { __cudaRegisterFatBinaryEnd(handle_); }
  Binary(const Binary&) = delete;
  Binary& operator=(const Binary&) = delete;
  ~Binary() { __cudaUnregisterFatBinary(handle_); }
  void add(const char& kernel, const char* name) const {
    __cudaRegisterFunction(handle_, &kernel, nullptr, name, -1, nullptr, nullptr, nullptr, nullptr, nullptr);
  }

 private:
  void** handle_ = __cudaRegisterFatBinary(nullptr);
};

cudaError_t launch(cudaStream_t stream, const char& kernel, Pair pair, int* to, double factor) {
  cudaLaunchConfig_t config{};
  config.gridDim = dim3{1};
  config.blockDim = dim3{4};
  config.stream = stream;
  void* arguments[] = {&pair, &to, &factor};
  return cudaLaunchKernelExC(&config, &kernel, arguments);
}

}  // namespace

TEST_CASE("a launch runs the kernel's twin with the arguments at the time of the launch") {
  for (const fake_cuda::Options& machine : fake_cuda::every_schedule()) {
    CAPTURE(fake_cuda::to_string(machine));
    fake_cuda::restart(machine);
    const Binary binary;
    binary.add(stub, "_Z8put_pair4PairPid");
    fake_cuda::set_twin(&stub, fake_cuda::twin_of<&put_pair>);
    const cudaStream_t stream = gpu::stream();
    int* const to = gpu::memory<int>(4);
    CHECK(launch(stream, stub, {'a', 6}, to, 0.5) == cudaSuccess);
    for (std::size_t i = 0; i < 4; ++i) CHECK(gpu::value(to + i, stream) == 'a' + 3);
    CHECK(fake_cuda::counts().kernels == 1);
    int here = 0;
    const Ending ending = stderr_of([&] { static_cast<void>(launch(stream, stub, {'a', 6}, &here, 0.5)); });
    CHECK(ending.says(
        "word 1 of the arguments of 'kernel put_pair(Pair, int*, double)' is an address of the host's memory"));
    fake_cuda::fail_call("cudaLaunchKernelEx", cudaErrorLaunchOutOfResources);
    CHECK(launch(stream, stub, {'a', 6}, to, 0.5) == cudaErrorLaunchOutOfResources);
  }
}

TEST_CASE("kernels are registered while their binary exists") {
  fake_cuda::restart({});
  const cudaStream_t stream = gpu::stream();
  CHECK(fake_cuda::registered_kernels().empty());
  {
    const Binary binary;
    binary.add(stub, "_Z8put_pair4PairPid");
    binary.add(other_stub, "by_hand");
    CHECK(fake_cuda::registered_kernels().size() == 2);
  }
  CHECK(fake_cuda::registered_kernels().empty());
  CHECK(launch(stream, stub, {}, nullptr, 0) == cudaErrorInvalidDeviceFunction);
}

TEST_CASE("calls that nvcc's host code does not make are rejected") {
  fake_cuda::restart({});
  const cudaStream_t stream = gpu::stream();
  const Binary binary;
  binary.add(stub, "by_hand");
  CHECK(stderr_of([&] {
          static_cast<void>(launch(stream, stub, {}, nullptr, 0));
        }).says("the kernel 'by_hand' of nvcc has no twin"));
  CHECK(stderr_of([&] { binary.add(stub, "by_hand"); }).says("the kernel 'by_hand' is registered twice"));
  CHECK(stderr_of([] {
          void* nobody = nullptr;
          __cudaRegisterFunction(&nobody, &other_stub, nullptr, "lost", -1, nullptr, nullptr, nullptr, nullptr,
                                 nullptr);
        }).says("a kernel of a binary that was not registered"));
  CHECK(stderr_of([] {
          fake_cuda::set_twin(&other_stub, fake_cuda::twin_of<&put_pair>);
        }).says("a twin of a function that nvcc's host code did not register as a kernel"));
  const char* const by_brackets = "a kernel is launched by <<<>>>: use dist::cuda::launch";
  CHECK(stderr_of([] {
          static_cast<void>(__cudaPopCallConfiguration(nullptr, nullptr, nullptr, nullptr));
        }).says(by_brackets));
  CHECK(stderr_of([] { static_cast<void>(__cudaGetKernel(nullptr, nullptr)); }).says(by_brackets));
  CHECK(
      stderr_of([] { static_cast<void>(__cudaLaunchKernel(nullptr, {}, {}, nullptr, 0, nullptr)); }).says(by_brackets));
}
