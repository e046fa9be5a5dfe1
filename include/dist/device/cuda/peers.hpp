#pragma once

#include <cstddef>
#include <span>

#include <dist/device/cuda/api.hpp>
#include <dist/device/cuda/selected_device.hpp>

namespace dist::cuda {

/// Whether kernels of `device` can use the memory of `peer`.
[[nodiscard]] inline bool reaches(int device, int peer) {
  if (device == peer) return true;
  int can = 0;
  DIST_CUDA_CHECK(cudaDeviceCanAccessPeer(&can, device, peer));
  return can != 0;
}

/// Kernels of each of these GPUs may use the memory of the others from now on, where the machine lets them.
inline void enable_peer_access(std::span<const std::size_t> devices) {
  for (const std::size_t device : devices)
    for (const std::size_t peer : devices) {
      if (device == peer || !reaches(static_cast<int>(device), static_cast<int>(peer))) continue;
      const SelectedDevice selected{static_cast<int>(device)};
      const cudaError_t answer = cudaDeviceEnablePeerAccess(static_cast<int>(peer), 0);
      if (answer == cudaErrorPeerAccessAlreadyEnabled)
        forget(answer);
      else
        cuda::check(answer, "cudaDeviceEnablePeerAccess(peer, 0)");
    }
}

}  // namespace dist::cuda
