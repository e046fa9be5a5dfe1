/// The launcher that started this process.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include <dist/cluster/cluster_spec.hpp>
#include <dist/cluster/environment.hpp>
#include <dist/core/config.hpp>
#include <dist/core/error.hpp>

namespace dist {

/// A launcher, and the values of its variables.
struct Launcher {
  /// The kind of launcher; `pmi` and `pmix` are launchers known only by these interfaces.
  enum class Kind { none, open_mpi, pmi, slurm, pmix, torchrun };

  Kind kind = Kind::none;                   ///< kind of launcher; none: started by hand
  std::string name{};                       ///< for messages: "Open MPI's mpirun"
  std::optional<std::size_t> world_size{};  ///< number of processes it started
  std::optional<std::size_t> rank{};        ///< of this process
  std::string evidence{};                   ///< the variable of `world_size`: "OMPI_COMM_WORLD_SIZE"
  bool starts_mpi = false;                  ///< True if MPI_Init connects the processes

  /// True if MPI_COMM_WORLD consists of its processes. False for a launcher of one process, such as a shell in a Slurm
  /// step or under mpirun.
  [[nodiscard]] bool makes_world() const noexcept { return starts_mpi && world_size != 1; }
};

/// Detects the launcher by the variables of Open MPI's mpirun, PMI (mpirun of MPICH and Intel MPI, srun --mpi=pmi2),
/// srun, PMIx and torchrun.
///
/// The order matters: in a Slurm allocation, mpirun starts its daemons with srun, and its ranks inherit both sets of
/// variables. `srun --mpi=pmix` sets PMIX_RANK, but the number of ranks only in Slurm's variables; `--mpi=pmi2` sets
/// both. A batch script has no step (SLURM_STEP_ID), and does not count. Under srun, MPI starts only with variables of
/// PMIx or PMI.
[[nodiscard]] Launcher find_launcher(const Environment& environment = Environment{});

/// Throws InvalidArgument, with the correct command line, if the launcher started several processes but this one is
/// alone: the MPI world has one process, or the launcher does not start MPI. Otherwise, every process would silently
/// train alone.
void require_world_size(const Launcher& launcher, std::size_t world_size);

/// Returns a note if the process runs alone, directly in a Slurm batch script or interactive allocation of several
/// tasks.
[[nodiscard]] std::optional<std::string> launcher_note(const Environment& environment = Environment{});

/// The processes that an MPI launcher started: rank r is worker r, so worker 0 is the chief. They have no addresses;
/// the launcher connects them.
class LauncherResolver {
 public:
  /// Reads size and rank from the launcher's variables. Without both, the cluster is empty.
  explicit LauncherResolver(const Environment& environment = Environment{}) : launcher_(find_launcher(environment)) {
    if (launcher_.world_size && launcher_.rank) require_rank();
  }
  /// Uses the size and rank of an existing MPI world. Throws InvalidArgument unless rank < size.
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
          concat("The rank that ", launcher_.name, " gave cannot be used"),
          concat("rank ", *launcher_.rank, " of ", *launcher_.world_size, " (", launcher_.evidence, ")"),
          "Ranks count from 0 to the size minus 1; do not change the launcher's variables");
  }

  Launcher launcher_;
};

}  // namespace dist

#ifndef DIST_COMPILED
#include <dist/cluster/launcher.ipp>
#endif
