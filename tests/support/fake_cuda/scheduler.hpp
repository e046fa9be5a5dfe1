/// Operations that were put and are not done, and when they run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>

#include "operation.hpp"

namespace fake_cuda {

/// Takes an operation whose `before` is complete, and runs what the schedule likes.
void put(const OperationRef& operation);

/// The host waits until `operation` is done; null is done. Refuses a wait that cannot end.
void wait_for(const OperationRef& operation);

/// The host waits until nothing of `device` is pending, of whatever stream, even of one that was destroyed.
void wait_for_device(int device);

/// The time that the GPUs' clock shows, in nanoseconds; all have the same.
[[nodiscard]] std::int64_t gpu_time();

/// The host looks whether `operation` is done, which lets something run, as a poll that goes on must once succeed.
[[nodiscard]] bool poll(const OperationRef& operation);

/// Lets something run while no host looks, where it may be that other processes have made it ready: from then on a wait in
/// which nothing can run is no deadlock.
void let_run();

/// An operation that is not done and was given an address between `first` and `end`; null if there is none.
[[nodiscard]] const Operation* pending_user(const void* first, const void* end);

[[nodiscard]] std::size_t operations_run() noexcept;

/// Numbers for Schedule::random.
[[nodiscard]] std::mt19937_64& chance() noexcept;

/// The operation that the calling thread executes, or null.
[[nodiscard]] const Operation* running_operation() noexcept;

/// Runs what nobody waited for, as far as it may run, and forgets the rest.
void reset_scheduler(std::uint64_t seed);

}  // namespace fake_cuda
