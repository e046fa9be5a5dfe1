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

/// Where a GPU is plugged in, as the system writes it: "0000:3b:00.0".
[[nodiscard]] inline std::string pci_address(int device) {
  std::array<char, 32> address{};
  DIST_CUDA_CHECK(cudaDeviceGetPCIBusId(address.data(), static_cast<int>(address.size()), device));
  for (char& letter : address)
    if (letter >= 'A' && letter <= 'F') letter = static_cast<char>(letter - 'A' + 'a');
  return address.data();
}

/// The processors on which the host threads of replicas on these GPUs stay: each a core of this process's share, as far as
/// there are enough, on the side of the machine where the GPU is plugged in. `root` is where the system tells that. None,
/// so that the system places the threads, where it does not tell it of a GPU, or a GPU has fewer processors than replicas.
[[nodiscard]] inline std::vector<std::size_t> processors_near(std::span<const std::size_t> devices,
                                                              const std::string& root = "/sys/bus/pci/devices") {
  const std::vector<std::size_t> allowed = allowed_processors();
  std::vector<std::size_t> free;  // the best first
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
