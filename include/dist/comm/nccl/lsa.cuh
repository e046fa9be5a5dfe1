/// Memory of a node's other GPUs by NCCL's windows (LSA: load and store access). The one header that includes what NCCL
/// offers kernels, which takes the compiler more than a second.
#pragma once

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"  // NCCL's own, which nvcc shows
#include <nccl_device.h>
#pragma GCC diagnostic pop

#include <cstddef>

#include <dist/comm/nccl/api.hpp>
#include <dist/device/cuda/launch.cuh>

#if NCCL_VERSION_CODE < 22807
#error "Windows of NCCL that kernels reach need NCCL 2.28.7: install nvidia-nccl-cu13, or use NcclAllReduce"
#endif

namespace dist::nccl {

/// Finds where a window begins in the memory of each rank, as this rank's GPU knows it: a body of Queue::for_each over the
/// ranks.
struct FindWindow {
  ncclWindow_t window;
  std::byte** first;
  __device__ void operator()(std::size_t rank) const {
    first[rank] = static_cast<std::byte*>(ncclGetLsaPointer(window, 0, static_cast<int>(rank)));
  }
};

/// What a device communicator needs that has nothing but its ranks.
[[nodiscard]] inline ncclDevCommRequirements no_requirements() {
#ifdef NCCL_DEV_COMM_REQUIREMENTS_INITIALIZER
  return NCCL_DEV_COMM_REQUIREMENTS_INITIALIZER;  // from 2.29 on
#else
  return {};
#endif
}

}  // namespace dist::nccl
