#pragma once

#include <cuda_runtime.h>
#include <thrust/system/cuda/execution_policy.h>

#include <dist/device/cuda/queue.cuh>
#include <dist/device/thrust_policy.hpp>

namespace dist::cuda {

/// Runs Thrust algorithms on the queue's stream: algorithms with a result wait for the GPU, others do not. Selects the
/// queue's GPU for the calling thread. Thrust allocates temporary memory.
[[nodiscard]] inline auto thrust_policy(const Queue& queue) {
  queue.enter();
  return thrust::cuda::par_nosync.on(queue.stream().get());
}

}  // namespace dist::cuda
