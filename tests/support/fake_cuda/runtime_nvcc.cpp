// Functions that the host code in nvcc's objects calls, in addition to those in the runtime's headers.
#include <cuda_runtime_api.h>
#include <cxxabi.h>

#include <cstddef>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "kernel.hpp"
#include "refusal.hpp"
#include "twin.hpp"

namespace fake_cuda {
namespace {

struct Registered {
  void** binary;
  std::string name;
  Twin twin = nullptr;
};
struct Registry {
  std::mutex lock;
  std::map<const void*, Registered> kernels;  // by the address of the stub
  std::map<void**, std::unique_ptr<void*>> binaries;
};
Registry& registry() {
  static Registry all;
  return all;
}

std::string demangled(const char* name) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text{abi::__cxa_demangle(name, nullptr, nullptr, &status),
                                                         &std::free};
  return status == 0 ? text.get() : name;
}

}  // namespace

void set_twin(const void* stub, Twin twin) {
  const std::lock_guard lock{registry().lock};
  const auto found = registry().kernels.find(stub);
  if (found == registry().kernels.end())
    refuse("a twin of a function that nvcc's host code did not register as a kernel");
  found->second.twin = twin;
}

std::vector<std::string> registered_kernels() {
  const std::lock_guard lock{registry().lock};
  std::vector<std::string> names;
  for (const auto& [stub, kernel] : registry().kernels) names.push_back(kernel.name);
  return names;
}

}  // namespace fake_cuda

using namespace fake_cuda;

extern "C" {

// At program start and exit.
void** __cudaRegisterFatBinary(void*) {
  const std::lock_guard lock{registry().lock};
  auto handle = std::make_unique<void*>();
  void** const binary = handle.get();
  registry().binaries.emplace(binary, std::move(handle));
  return binary;
}
void __cudaRegisterFatBinaryEnd(void**) {}
char __cudaInitModule(void**) { return 0; }
void __cudaUnregisterFatBinary(void** binary) {
  const std::lock_guard lock{registry().lock};
  std::erase_if(registry().kernels, [&](const auto& each) { return each.second.binary == binary; });
  registry().binaries.erase(binary);
}
void __cudaRegisterFunction(void** binary, const char* stub, char*, const char* name, int, uint3*, uint3*, dim3*, dim3*,
                            int*) {
  const std::lock_guard lock{registry().lock};
  if (!registry().binaries.contains(binary)) refuse("a kernel of a binary that was not registered");
  if (!registry().kernels.emplace(stub, Registered{binary, demangled(name)}).second)
    refuse("the kernel '" + demangled(name) + "' is registered twice");
}
// Twins use the host copies of variables.
void __cudaRegisterVar(void**, char*, char*, const char*, int, std::size_t, int, int) {}

// A launch by launch().
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* stub, void** arguments) {
  std::string name;
  Twin twin = nullptr;
  {
    const std::lock_guard lock{registry().lock};
    const auto found = registry().kernels.find(stub);
    if (found == registry().kernels.end()) return cudaErrorInvalidDeviceFunction;
    name = found->second.name;
    twin = found->second.twin;
  }
  if (twin == nullptr) refuse("the kernel '" + name + "' of nvcc has no twin: see set_twin");
  return launch_named(*config, "kernel " + name, twin(arguments));
}

// Stubs call it, and only <<<>>> calls stubs.
cudaError_t __cudaPopCallConfiguration(dim3*, dim3*, std::size_t*, void*) {
  refuse("a kernel is launched by <<<>>>: use dist::cuda::launch");
}
cudaError_t __cudaGetKernel(cudaKernel_t*, const void*) {
  refuse("a kernel is launched by <<<>>>: use dist::cuda::launch");
}
cudaError_t __cudaLaunchKernel(cudaKernel_t, dim3, dim3, void**, std::size_t, cudaStream_t) {
  refuse("a kernel is launched by <<<>>>: use dist::cuda::launch");
}

}  // extern "C"
