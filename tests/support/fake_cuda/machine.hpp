/// Fake GPUs: options and queries for tests. Everything else is the CUDA runtime's own interface.
#pragma once

#include <driver_types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace fake_cuda {

/// The execution order of submitted operations. Each is legal for a GPU.
enum class Schedule {
  eager,   // at once, if dependencies allow
  lazy,    // when the host waits, and then only what it waits for
  random,  // in a random legal order of operations, blocks of a grid and threads of a block
};

struct Options {
  int devices = 1;
  Schedule schedule = Schedule::eager;
  std::uint64_t seed = 1;                     // for Schedule::random
  std::size_t memory = std::size_t{1} << 30;  // per GPU, in bytes
  bool peer_access = true;                    // GPUs can access each other's memory
  bool pageable_access = false;               // GPUs can access all host memory
  /// If true, every CUDA thread is a thread for the thread sanitizer, which then detects races within a kernel.
  /// Otherwise every operation is.
  bool separate_threads = false;
  int patience_ms = 1000;  // a longer wait in which nothing can run is a deadlock
  /// The CUDA version of the driver, such as 13000; 0: no driver; none: the runtime's version.
  std::optional<int> driver = std::nullopt;
  /// CUDA_VISIBLE_DEVICES, which `restart` sets or unsets: numbers of GPUs, and UUIDs of the form "GPU-1".
  std::optional<std::string> visible = std::nullopt;
};

/// Formats options for test names: "2 GPUs, random 3".
[[nodiscard]] std::string to_string(const Options& options);

/// Parses DIST_FAKE_CUDA, such as "2 random 3" or "4 lazy"; the defaults if it is not set.
[[nodiscard]] Options from_environment();

/// The options of the running machine, by default from the environment.
[[nodiscard]] const Options& options();

/// Starts a new machine, without counts, errors or peer access. Work of the previous machine runs to completion; its
/// objects must not be used any more.
void restart(const Options& options);

/// Events since the start of the machine.
struct Counts {
  std::size_t kernels = 0;
  std::size_t copies = 0;  // including fills
  std::size_t graph_launches = 0;
  std::size_t host_waits = 0;  // for a stream, an event or a device
  std::size_t operations_run = 0;
};
[[nodiscard]] Counts counts();

/// Objects that exist.
struct Live {
  std::size_t streams = 0;
  std::size_t events = 0;
  std::size_t graphs = 0;  // including instances
  std::size_t device_allocations = 0;
  std::size_t pinned_allocations = 0;
  friend bool operator==(const Live&, const Live&) = default;
};
[[nodiscard]] Live live();

/// Returns the GPUs on which the process has a context, because a thread selected or used them, by their visible
/// numbers.
[[nodiscard]] std::set<int> contexts();

/// Makes the `nth` next call of `function` (1: the next) return `error` and do nothing.
void fail_call(std::string_view function, cudaError_t error, int nth = 1);

/// Simulates a fault of a kernel: all following calls return `error`, until the machine is restarted.
void break_context(cudaError_t error);

}  // namespace fake_cuda
