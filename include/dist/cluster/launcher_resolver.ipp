#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include <dist/cluster/cluster_spec.hpp>
#include <dist/cluster/environment.hpp>
#include <dist/cluster/launcher.hpp>
#include <dist/cluster/launcher_resolver.hpp>
#include <dist/cluster/task.hpp>
#include <dist/core/error.hpp>

namespace dist {

DIST_INLINE LauncherResolver::LauncherResolver(const Environment& environment) : launcher_(find_launcher(environment)) {
  if (launcher_.world_size && launcher_.rank) require_rank();
}

DIST_INLINE LauncherResolver::LauncherResolver(std::size_t world_size, std::size_t rank)
    : launcher_{Launcher::Kind::none, "MPI", world_size, rank, "MPI_COMM_WORLD"} {
  require_rank();
}

DIST_INLINE ClusterSpec LauncherResolver::cluster_spec() const {
  ClusterSpec cluster;
  if (task())
    for (std::size_t rank = 0; rank < *launcher_.world_size; ++rank) cluster.add(Task{TaskType::worker, rank}, "");
  return cluster;
}

DIST_INLINE std::optional<Task> LauncherResolver::task() const noexcept {
  if (!launcher_.world_size || !launcher_.rank) return std::nullopt;
  return Task{TaskType::worker, *launcher_.rank};
}

DIST_INLINE std::string LauncherResolver::describe() const {
  return launcher_.name.empty() ? "no launcher" : launcher_.name;
}

DIST_INLINE void LauncherResolver::require_rank() const {
  constexpr std::size_t most = 1'000'000;
  if (*launcher_.rank >= *launcher_.world_size || *launcher_.world_size > most)
    throw InvalidArgument(
        concat("The rank that ", launcher_.name, " gave cannot be used"),
        concat("rank ", *launcher_.rank, " of ", *launcher_.world_size, " (", launcher_.evidence, ")"),
        "Ranks count from 0 to the size less 1; do not change the launcher's variables");
}

}  // namespace dist
