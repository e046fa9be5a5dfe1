/// Access to the memory of a node's other GPUs through NCCL windows (LSA: load and store access). Only this header
/// includes NCCL's device API, which takes more than a second to compile.
#pragma once

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"  // in NCCL's headers, reported by nvcc
#include <nccl_device.h>
#pragma GCC diagnostic pop

#include <cstddef>

#include <dist/comm/nccl/api.hpp>
#include <dist/device/cuda/launch.cuh>

#if NCCL_VERSION_CODE < 22807
#error "NCCL windows that kernels access need NCCL 2.28.7: install nvidia-nccl-cu13, or use NcclAllReduce"
#endif

namespace dist::nccl {

/// Finds the address of a window in the memory of each rank, as mapped by this rank's GPU. The body of a
/// Queue::for_each over the ranks.
struct FindWindow {
  ncclWindow_t window;  ///< window of the GPU's allocation
  std::byte** first;    ///< output: one address per rank
  /// Writes the address in the memory of `rank`.
  __device__ void operator()(std::size_t rank) const {
    first[rank] = static_cast<std::byte*>(ncclGetLsaPointer(window, 0, static_cast<int>(rank)));
  }
};

/// Returns the requirements of a device communicator that has only its ranks.
[[nodiscard]] inline ncclDevCommRequirements no_requirements() {
#ifdef NCCL_DEV_COMM_REQUIREMENTS_INITIALIZER
  return NCCL_DEV_COMM_REQUIREMENTS_INITIALIZER;  // since 2.29
#else
  return {};
#endif
}

}  // namespace dist::nccl
