#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <dist/core/config.hpp>
#include <dist/device/device.hpp>
#include <dist/device/topology.hpp>

namespace dist {

namespace detail {

/// How many tasks a node has in Slurm's shorthand for the tasks of all nodes, such as "3(x2),2,1"; 0 where it is none.
/// Throws nothing: <dist/cluster/slurm_resolver.hpp> reads all of it, and says what is wrong.
[[nodiscard]] std::size_t tasks_of_node(const char* list, std::size_t node) noexcept;

/// What the launcher's variables say (Open MPI, MPICH and Intel MPI, MVAPICH, torchrun, Slurm's srun); alone where they say
/// nothing, or nothing sensible.
[[nodiscard]] LocalProcesses local_processes() noexcept;

/// The part of `places`, by position, that process `here.number` of `here.count` takes: parts of the same size whose
/// processors are near each other. All of them where there are fewer than processes.
[[nodiscard]] std::vector<std::size_t> share_of(const Topology& places, LocalProcesses here);

/// Whether nobody restricted this process to some of the processors: it may use what the machine's, or the container's,
/// first process may.
[[nodiscard]] bool is_unbound();

}  // namespace detail

/// The processors for the replicas of this process, by their positions among `allowed_processors()`: all of them,
/// unless a launcher started several processes on this machine and bound none. Those would all begin with the same
/// processors and wait there for each other, so each takes a part of its own.
[[nodiscard]] std::vector<std::size_t> share_of_processors();

/// The CPU quota of this process in whole processors, at least 1, as its control groups limit it, for example in a
/// container. Returns the largest number if they set no limit. Reads cpu.max of version 2, and cpu.cfs_quota_us and
/// cpu.cfs_period_us of version 1, of the process's group and of all groups above it, from the files under `root`.
[[nodiscard]] std::size_t processor_quota(const std::string& root = "");

}  // namespace dist

#ifndef DIST_COMPILED
#include <dist/device/processor_share.ipp>
#endif
