/// NCCL without GPUs: collectives are operations on the streams of the fake GPUs (support/fake_cuda), of which each reads
/// and writes the memory of its own rank, and is done when all ranks have come; messages are done when both ends have.
/// Calls that NCCL would answer with a hang, wrong values or undefined behaviour are refused; so are those that wait without a
/// deadline, which the library does not make. Ranks may be in several processes of a machine, each with the fake GPUs of its
/// own. What a non-blocking call puts on a stream comes there when its communicator has left ncclInProgress.
#pragma once

#include <nccl.h>

#include <cstddef>
#include <string_view>

namespace fake_nccl {

struct Options {
  /// So many looks at a communicator find it in progress after each call.
  int polls = 0;
  /// Of the library that runs.
  int version = NCCL_VERSION_CODE;
  /// Whether a communicator fails where another process has aborted its own. NCCL promises neither.
  bool hears_of_aborts = false;
  /// Whether GPUs reach each other's memory, which windows need, and from how many ranks on; 0: of all.
  bool windows = true;
  int lsa_size = 0;
};

/// A library that nobody has used yet: nothing is made, no failure is asked for. After fake_cuda::restart.
void restart(const Options& options = {});

/// The `nth` call of `function` from now on (the first is 1) returns `error` and does nothing.
void fail_call(std::string_view function, ncclResult_t error, int nth = 1);

/// The next call of `function` does `act()` before anything else, such as to end the process.
void before_call(std::string_view function, void (*act)());

/// The `nth` collective from now on answers well, and the communicator of its rank fails afterwards.
void fail_later(ncclResult_t error, int nth = 1);

/// How often `function` was called.
[[nodiscard]] int calls(std::string_view function);

/// Communicators that were made and neither destroyed nor aborted.
[[nodiscard]] std::size_t live_communicators();

/// Windows that were made and not given back, of this process's ranks.
[[nodiscard]] std::size_t live_windows();

/// Groups that the calling thread has begun and not ended.
[[nodiscard]] int open_groups();

}  // namespace fake_nccl
