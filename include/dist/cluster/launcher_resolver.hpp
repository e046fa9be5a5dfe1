#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include <dist/cluster/cluster_spec.hpp>
#include <dist/cluster/environment.hpp>
#include <dist/cluster/launcher.hpp>
#include <dist/cluster/task.hpp>
#include <dist/core/error.hpp>

namespace dist {

/// The processes that an MPI launcher started: rank r is worker r, so worker 0 is the chief. They have no addresses;
/// the launcher connects them.
class LauncherResolver {
 public:
  /// Takes size and rank from the launcher's variables. No launcher, or one that does not tell the size: no cluster.
  explicit LauncherResolver(const Environment& environment = Environment{}) : launcher_(find_launcher(environment)) {
    if (launcher_.world_size && launcher_.rank) require_rank();
  }
  /// Takes those of an MPI world that is there already. Throws InvalidArgument unless rank < size.
  LauncherResolver(std::size_t world_size, std::size_t rank)
      : launcher_{Launcher::Kind::none, "MPI", world_size, rank, "MPI_COMM_WORLD"} {
    require_rank();
  }

  [[nodiscard]] ClusterSpec cluster_spec() const {
    ClusterSpec cluster;
    if (task())
      for (std::size_t rank = 0; rank < *launcher_.world_size; ++rank) cluster.add(Task{TaskType::worker, rank}, "");
    return cluster;
  }
  [[nodiscard]] std::optional<Task> task() const noexcept {
    if (!launcher_.world_size || !launcher_.rank) return std::nullopt;
    return Task{TaskType::worker, *launcher_.rank};
  }
  [[nodiscard]] std::optional<std::size_t> num_accelerators() const noexcept { return std::nullopt; }
  [[nodiscard]] std::string describe() const { return launcher_.name.empty() ? "no launcher" : launcher_.name; }

 private:
  void require_rank() const {
    constexpr std::size_t most = 1'000'000;
    if (*launcher_.rank >= *launcher_.world_size || *launcher_.world_size > most)
      throw InvalidArgument(
          text("The rank that ", launcher_.name, " gave cannot be used"),
          text("rank ", *launcher_.rank, " of ", *launcher_.world_size, " (", launcher_.evidence, ")"),
          "Ranks count from 0 to the size less 1; do not change the launcher's variables");
  }

  Launcher launcher_;
};

}  // namespace dist
