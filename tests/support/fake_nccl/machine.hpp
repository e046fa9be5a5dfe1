/// NCCL without GPUs: collectives are operations on streams of the fake GPUs (support/fake_cuda). Each accesses the
/// memory of its rank, and is done when all ranks have arrived; messages are done when both ends have arrived. Calls
/// that would hang, give wrong values or have undefined behaviour terminate the process, and so do waits without a
/// timeout, which the library never uses. Ranks may be in several processes of a machine, with separate fake GPUs. A
/// non-blocking call submits its work when its communicator leaves ncclInProgress.
#pragma once

#include <nccl.h>

#include <cstddef>
#include <string_view>

namespace fake_nccl {

struct Options {
  /// Number of polls after each call that find a communicator in progress.
  int polls = 0;
  int version = NCCL_VERSION_CODE;
  /// True if a communicator fails when another process aborts its own. NCCL guarantees neither.
  bool hears_of_aborts = false;
  /// True if GPUs can access each other's memory, as windows require; `lsa_size` is the number of ranks that can (0:
  /// all).
  bool windows = true;
  int lsa_size = 0;
};

/// Starts a new library, without objects or failures. Call it after fake_cuda::restart.
void restart(const Options& options = {});

/// Makes the `nth` next call of `function` (1: the next) return `error` and do nothing.
void fail_call(std::string_view function, ncclResult_t error, int nth = 1);

/// Makes the next call of `function` start with `act()`, for instance to exit the process.
void before_call(std::string_view function, void (*act)());

/// Makes the `nth` next collective succeed, and the communicator of its rank fail afterwards.
void fail_later(ncclResult_t error, int nth = 1);

[[nodiscard]] int calls(std::string_view function);

/// Number of communicators that were neither destroyed nor aborted.
[[nodiscard]] std::size_t live_communicators();

/// Number of windows of this process's ranks that exist.
[[nodiscard]] std::size_t live_windows();

/// Number of open groups of the calling thread.
[[nodiscard]] int open_groups();

}  // namespace fake_nccl
