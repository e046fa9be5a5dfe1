/// The GPUs that are not there: what a test chooses and may ask. Everything else is the CUDA runtime's own interface.
#pragma once

#include <driver_types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace fake_cuda {

/// When operations run that were put on streams. Each is a legal choice of a GPU.
enum class Schedule {
  eager,   // at once, as far as what they wait for allows
  lazy,    // when the host waits, and then only what it waits for
  random,  // in a legal order that the seed chooses, of operations, of the blocks of a grid and the threads of a block
};

struct Options {
  int devices = 1;
  Schedule schedule = Schedule::eager;
  std::uint64_t seed = 1;                     // of Schedule::random
  std::size_t memory = std::size_t{1} << 30;  // of each GPU, in bytes
  bool peer_access = true;                    // whether GPUs can be given access to each other's memory
  bool pageable_access = false;               // whether GPUs reach all of the host's memory
  /// Every CUDA thread is one to the thread sanitizer, which then sees races within a kernel. Else an operation is one.
  bool separate_threads = false;
  int patience_ms = 1000;  // after so long a wait in which nothing could run is a deadlock
  /// The CUDA that the driver is for, as 13000; 0 where there is no driver. None: that of the runtime.
  std::optional<int> driver = std::nullopt;
  /// CUDA_VISIBLE_DEVICES, which `restart` sets, or without it takes out of the environment: numbers of GPUs, and UUIDs,
  /// here of the form "GPU-1".
  std::optional<std::string> visible = std::nullopt;
};

/// For the names of tests: "2 GPUs, random 3".
[[nodiscard]] std::string to_string(const Options& options);

/// The options that the environment names in DIST_FAKE_CUDA, such as "2 random 3" or "4 lazy"; the defaults without.
[[nodiscard]] Options from_environment();

/// Options of the machine that runs; those of the environment until the first `restart`.
[[nodiscard]] const Options& options();

/// A machine that nobody has used yet: nothing counted, no error, no peer access. What was put on the one before runs to
/// its end; nothing of it may be used any more.
void restart(const Options& options);

/// What has happened since the machine was started.
struct Counts {
  std::size_t kernels = 0;
  std::size_t copies = 0;  // fills, too
  std::size_t graph_launches = 0;
  std::size_t host_waits = 0;  // for a stream, an event or a device
  std::size_t operations_run = 0;
};
[[nodiscard]] Counts counts();

/// What was made and not yet given back.
struct Live {
  std::size_t streams = 0;
  std::size_t events = 0;
  std::size_t graphs = 0;  // and those instantiated
  std::size_t device_allocations = 0;
  std::size_t pinned_allocations = 0;
  friend bool operator==(const Live&, const Live&) = default;
};
[[nodiscard]] Live live();

/// The GPUs on which the process has a context, by their visible numbers: those that a thread selected, or used.
[[nodiscard]] std::set<int> contexts();

/// The `nth` call of `function` from now on (the first is 1) returns `error` and does nothing.
void fail_call(std::string_view function, cudaError_t error, int nth = 1);

/// A fault of a kernel: this call and all that follow return `error`, until the machine is restarted.
void break_context(cudaError_t error);

}  // namespace fake_cuda
