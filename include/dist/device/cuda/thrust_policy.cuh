#pragma once

#include <cuda_runtime.h>
#include <thrust/system/cuda/execution_policy.h>

#include <dist/device/cuda/queue.cuh>
#include <dist/device/thrust_policy.hpp>

namespace dist::cuda {

/// The queue's stream: algorithms without a result do not wait for the GPU, those with one do. Selects the queue's GPU for
/// the calling thread. Temporary memory is allocated by Thrust.
[[nodiscard]] inline auto thrust_policy(const Queue& queue) {
  queue.enter();
  return thrust::cuda::par_nosync.on(queue.stream().get());
}

}  // namespace dist::cuda
