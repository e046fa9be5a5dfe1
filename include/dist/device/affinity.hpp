#pragma once

#include <pthread.h>
#include <sched.h>

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include <dist/core/config.hpp>
#include <dist/device/device.hpp>
#include <dist/device/topology.hpp>

namespace dist {

namespace detail {

/// A dynamically sized cpu_set_t, for machines with more processors than fit into a cpu_set_t.
class ProcessorMask {
 public:
  explicit ProcessorMask(std::size_t processors) : words_(processors / bits + 1) {}

  void set(std::size_t processor) { words_[processor / bits] |= 1UL << processor % bits; }
  [[nodiscard]] bool has(std::size_t processor) const {
    return (words_[processor / bits] >> processor % bits & 1) != 0;
  }
  [[nodiscard]] std::size_t capacity() const noexcept { return words_.size() * bits; }
  [[nodiscard]] std::size_t bytes() const noexcept { return words_.size() * sizeof(unsigned long); }
  [[nodiscard]] cpu_set_t* system() noexcept { return reinterpret_cast<cpu_set_t*>(words_.data()); }

 private:
  static constexpr std::size_t bits = 8 * sizeof(unsigned long);
  std::vector<unsigned long> words_;
};

/// Returns the processors on which thread `id` may run, in ascending order; 0 is the calling thread.
[[nodiscard]] std::vector<std::size_t> processors_of_thread(int id);

}  // namespace detail

/// Returns the processors on which this process may run, in ascending order, as restricted by a launcher or container.
/// This is the affinity of the main thread, so that pinned threads get the same result; if an OpenMP runtime has bound
/// the main thread (OMP_PROC_BIND), only its place.
[[nodiscard]] std::vector<std::size_t> allowed_processors();

/// Binds the calling thread, and threads that it starts later, to these processors. Ignores failures, as placement is
/// only an optimisation.
void bind_this_thread(std::span<const std::size_t> processors);
/// Binds the calling thread to one processor. Ignores failures.
void pin_this_thread(std::size_t processor);

/// Binds the calling thread to these processors. The destructor restores the previous affinity, if it runs in the same
/// thread and the affinity has not changed since.
class ThreadBinding {
 public:
  /// Does nothing if `processors` is empty or the system does not allow it.
  explicit ThreadBinding(std::span<const std::size_t> processors);
  ThreadBinding(const ThreadBinding&) = delete;
  ThreadBinding& operator=(const ThreadBinding&) = delete;
  ~ThreadBinding();

 private:
  pthread_t thread_;
  std::vector<std::size_t> before_;
  std::vector<std::size_t> bound_;
};

/// Moves the calling thread to `processor` without binding it there: restricts its affinity for a few microseconds, and
/// then restores it. Does nothing if the affinity excludes `processor`. Does not allocate.
void move_this_thread(std::size_t processor) noexcept;

namespace detail {

/// Parses the number of tasks of a node from Slurm's compressed list for all nodes, such as "3(x2),2,1". Returns 0 if
/// it is malformed; `<dist/cluster/slurm_resolver.hpp>` reports such errors.
[[nodiscard]] std::size_t tasks_of_node(const char* list, std::size_t node) noexcept;

/// Returns the local rank and local size from the launcher's environment variables (Open MPI, MPICH and Intel MPI,
/// MVAPICH, torchrun, Slurm's srun); a single process if they are missing or invalid.
[[nodiscard]] LocalProcesses local_processes() noexcept;

/// Returns the positions in `places` that process `here.number` of `here.count` uses: parts of equal size, with
/// processors near each other. Returns all positions if there are fewer than processes.
[[nodiscard]] std::vector<std::size_t> share_of(const Topology& places, LocalProcesses here);

/// True if this process is not bound: it may run on all processors of the first process of the machine or container.
[[nodiscard]] bool is_unbound();

}  // namespace detail

/// Returns the processors for the replicas of this process, as positions in `allowed_processors()`: all of them, unless
/// a launcher started several unbound processes on this machine. Then each process gets a separate part.
[[nodiscard]] std::vector<std::size_t> share_of_processors();

/// Returns the CPU quota of this process in whole processors, at least 1, as limited by its control groups. Returns the
/// largest number without a limit. Reads cpu.max (cgroup v2), and cpu.cfs_quota_us and cpu.cfs_period_us (v1), of the
/// process's group and all its ancestors, from the files under `root`.
[[nodiscard]] std::size_t processor_quota(const std::string& root = "");

}  // namespace dist

#ifndef DIST_COMPILED
#include <dist/device/affinity.ipp>
#endif
