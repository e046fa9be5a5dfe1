/// Execution policies of Thrust for a replica's queue, so that the same source runs sorts, scans and reductions by key
/// on all devices.
#pragma once

#include <thrust/system/cpp/execution_policy.h>

#include <dist/device/cpu.hpp>

namespace dist {

/// Runs algorithms synchronously in the calling thread.
[[nodiscard]] inline auto thrust_policy(const Cpu::Queue&) { return thrust::cpp::par; }

/// A replica with a queue.
template <class R>
concept WithQueue = requires(const R& replica) {
  replica.queue();
};

/// Returns the execution policy of Thrust for this replica:
///
///     thrust::sort(dist::thrust_policy(replica), first, last);
///
/// On Cpu, algorithms run in the replica's thread; on Cuda, with `<dist/device/cuda/thrust_policy.cuh>`, on the
/// replica's stream.
template <WithQueue Replica>
[[nodiscard]] auto thrust_policy(const Replica& replica) {
  return thrust_policy(replica.queue());
}

}  // namespace dist
