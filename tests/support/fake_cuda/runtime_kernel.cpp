#include <cuda_runtime_api.h>
#include <sys/mman.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "block.hpp"
#include "call.hpp"
#include "counts.hpp"
#include "device_memory.hpp"
#include "handles.hpp"
#include "machine.hpp"
#include "pinned_memory.hpp"

namespace fake_cuda {
namespace {

constexpr std::uint64_t most_threads = 1024;

/// Checks the limits of the hardware.
bool is_possible(dim3 grid, dim3 block) {
  const std::uint64_t threads = std::uint64_t{block.x} * block.y * block.z;
  return threads >= 1 && threads <= most_threads && block.z <= 64 && grid.x >= 1 && grid.x <= 0x7fffffff &&
         grid.y >= 1 && grid.y <= 65535 && grid.z >= 1 && grid.z <= 65535;
}

/// Returns "kernel (Saxpy, long unsigned int)" from the signature of g++ or clang++: "[with Expected = {Saxpy, long
/// unsigned int}; Given = ...", "[Expected = <Saxpy, unsigned long>, Given = ...".
std::string name_of_kernel(std::string_view signature) {
  constexpr std::string_view marker = "Expected = ";
  signature.remove_prefix(signature.find(marker) + marker.size() + 1);
  const std::size_t end = signature.find("Given = ") - std::string_view(">, ").size();
  return "kernel (" + std::string(signature.substr(0, end)) + ")";
}

bool is_mapped(std::uintptr_t address) {
  constexpr std::uintptr_t page = 4096;
  unsigned char resident = 0;
  return mincore(reinterpret_cast<void*>(address / page * page), 1, &resident) == 0;
}

/// Returns the addresses in the argument words. Terminates the process if kernels of `device` cannot access one of
/// them.
std::vector<const void*> addresses_in(std::span<const std::uintptr_t> words, const std::string& kernel, int device) {
  std::vector<const void*> addresses;
  for (std::size_t i = 0; i < words.size(); ++i) {
    // Memory below 4 GiB belongs to sanitizers, and looks like 32-bit numbers.
    constexpr std::uintptr_t lowest = std::uintptr_t{1} << 32, end = std::uintptr_t{1} << 47;
    if (words[i] < lowest || words[i] >= end) continue;
    const void* const address = reinterpret_cast<const void*>(words[i]);
    const std::string where = "word " + std::to_string(i) + " of the arguments of '" + kernel + "' is ";
    const Allocation* const allocation = allocation_at(address);
    if (allocation != nullptr && allocation->freed) refuse(where + "the address of " + place_of(address));
    if (allocation == nullptr && !is_pinned_address(address)) {
      if (!options().pageable_access && is_mapped(words[i]))
        refuse(where + "an address of the host's memory, which no GPU reaches");
      continue;  // an ordinary number
    }
    if (allocation == nullptr && !is_mapped_for(device, address))
      refuse(where + "an address of pinned memory of the host that is not mapped for GPU " + std::to_string(device) +
             ": allocate it with cudaHostAllocMapped, and with cudaHostAllocPortable for several GPUs");
    addresses.push_back(address);
  }
  return addresses;
}

}  // namespace

cudaError_t launch_named(const cudaLaunchConfig_t& config, std::string_view name, BoundKernel kernel) {
  return call("cudaLaunchKernelEx", [&] {
    CUstream_st& on = handles().stream(config.stream, "cudaLaunchKernelEx");
    if (!is_possible(config.gridDim, config.blockDim)) return cudaErrorInvalidConfiguration;
    if (on.device != chosen_device()) return cudaErrorInvalidResourceHandle;
    ++counter().kernels;
    OperationRef operation = next_operation(on, name);
    operation->addresses = addresses_in(kernel.words(), operation->name, on.device);
    operation->work =
        std::make_shared<const std::function<void()>>([kernel = std::move(kernel), grid = config.gridDim,
                                                       block = config.blockDim] { run_grid(kernel, grid, block); });
    put_on(on, std::move(operation));
    return cudaSuccess;
  });
}

cudaError_t launch(const cudaLaunchConfig_t& config, std::string_view signature, BoundKernel kernel) {
  return launch_named(config, name_of_kernel(signature), std::move(kernel));
}

}  // namespace fake_cuda
