#pragma once

#include <cstddef>
#include <vector>

#include <dist/core/config.hpp>
#include <dist/device/topology.hpp>

namespace dist {

/// This process among those that one launcher started on this machine.
struct LocalProcesses {
  std::size_t number = 0;
  std::size_t count = 1;
};

namespace detail {

/// What the launcher's variables say (Open MPI, MPICH and Intel MPI, torchrun); alone where they say nothing, or
/// nothing sensible.
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

}  // namespace dist

#ifndef DIST_COMPILED
#include <dist/device/processor_share.ipp>
#endif
