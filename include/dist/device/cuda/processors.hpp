#pragma once

#include <array>
#include <cstddef>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include <dist/core/text.hpp>
#include <dist/device/affinity.hpp>
#include <dist/device/cpu.hpp>
#include <dist/device/cuda/api.hpp>
#include <dist/device/topology.hpp>

namespace dist::cuda {

/// Returns the PCI address of a GPU in the system's format: "0000:3b:00.0".
[[nodiscard]] inline std::string pci_address(int device) {
  std::array<char, 32> address{};
  DIST_CUDA_CHECK(cudaDeviceGetPCIBusId(address.data(), static_cast<int>(address.size()), device));
  for (char& letter : address)
    if (letter >= 'A' && letter <= 'F') letter = static_cast<char>(letter - 'A' + 'a');
  return address.data();
}

/// Returns the processors for the host threads of replicas on these GPUs: one core each from this process's share, if
/// there are enough, on the NUMA node of the GPU. `root` is the PCI device folder. Returns none, so that the system
/// places the threads, if it has no entry for a GPU, or a GPU has fewer processors than replicas.
[[nodiscard]] inline std::vector<std::size_t> processors_near(std::span<const std::size_t> devices,
                                                              const std::string& root = "/sys/bus/pci/devices") {
  const std::vector<std::size_t> allowed = allowed_processors();
  std::vector<std::size_t> free;  // in order of preference
  for (const std::size_t position : Cpu::placement(std::numeric_limits<std::size_t>::max()))
    free.push_back(allowed[position]);
  std::vector<std::size_t> chosen;
  for (const std::size_t device : devices) {
    const std::string list = concat(root, "/", pci_address(static_cast<int>(device)), "/local_cpulist");
    const std::vector<std::size_t> near = listed_processors(free, list);
    if (near.empty()) return {};
    chosen.push_back(near.front());
    std::erase(free, near.front());
  }
  return chosen;
}

}  // namespace dist::cuda
