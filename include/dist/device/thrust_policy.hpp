/// A replica's queue as an execution policy of Thrust, so that one source runs a sort, a scan or a reduction by key on
/// every replica.
#pragma once

#include <thrust/system/cpp/execution_policy.h>

#include <dist/device/cpu.hpp>

namespace dist {

/// The host system: an algorithm runs in the calling thread, and is done when it returns.
[[nodiscard]] inline auto thrust_policy(const Cpu::Queue&) { return thrust::cpp::par; }

/// A replica, in whose queue work is put.
template <class R>
concept WithQueue = requires(const R& replica) {
  replica.queue();
};

/// Where Thrust's algorithms run for this replica:
///
///     thrust::sort(dist::thrust_policy(replica), first, last);
///
/// On Cpu in the replica's thread; on Cuda, with <dist/device/cuda/thrust_policy.cuh>, in the replica's stream.
template <WithQueue Replica>
[[nodiscard]] auto thrust_policy(const Replica& replica) {
  return thrust_policy(replica.queue());
}

}  // namespace dist
