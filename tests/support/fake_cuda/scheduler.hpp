/// Pending operations and their execution.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>

#include "operation.hpp"

namespace fake_cuda {

/// Submits an operation with complete `before`, and runs operations according to the schedule.
void put(const OperationRef& operation);

/// Waits on the host until `operation`, if not null, is done. Terminates the process on a deadlock.
void wait_for(const OperationRef& operation);

/// Waits on the host for all work of `device`, including work of destroyed streams.
void wait_for_device(int device);

/// Returns the time of the GPUs' common clock in nanoseconds.
[[nodiscard]] std::int64_t gpu_time();

/// True if `operation` is done. Runs something, because repeated polling must succeed eventually.
[[nodiscard]] bool poll(const OperationRef& operation);

/// Runs something while no host polls, if other processes may have made it ready. From then on, a wait in which nothing
/// can run is not a deadlock.
void let_run();

/// Returns a pending operation with an address between `first` and `end`; null if none exists.
[[nodiscard]] const Operation* pending_user(const void* first, const void* end);

[[nodiscard]] std::size_t operations_run() noexcept;

/// Random numbers for Schedule::random.
[[nodiscard]] std::mt19937_64& chance() noexcept;

/// Returns the operation that the calling thread executes, or null.
[[nodiscard]] const Operation* running_operation() noexcept;

/// Runs pending operations that can run, and discards the rest.
void reset_scheduler(std::uint64_t seed);

}  // namespace fake_cuda
