/// Which launcher started this process, and how many processes it promised.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include <dist/cluster/environment.hpp>
#include <dist/core/config.hpp>

namespace dist {

/// A launcher, and what its variables say.
struct Launcher {
  enum class Kind { none, open_mpi, pmi, slurm, pmix, torchrun };

  Kind kind = Kind::none;
  std::string name{};                       ///< for messages: "Open MPI's mpirun"
  std::optional<std::size_t> world_size{};  ///< the number of processes that it promised
  std::optional<std::size_t> rank{};        ///< of this process among them
  std::string evidence{};                   ///< the variable that promises: "OMPI_COMM_WORLD_SIZE"
  bool starts_mpi = false;                  ///< MPI_Init joins the processes that it started

  /// True if MPI_COMM_WORLD is the world of several processes that it started. A launcher of one process, such as a
  /// shell in a Slurm step or under mpirun, leaves that process alone.
  [[nodiscard]] bool makes_world() const noexcept { return starts_mpi && world_size != 1; }
};

/// Looks for the variables of Open MPI's mpirun, PMI (MPICH's and Intel's mpirun, srun --mpi=pmi2), srun, PMIx and
/// torchrun.
///
/// The order matters: an mpirun inside a Slurm allocation starts its daemons by srun, whose variables its ranks
/// inherit, and srun --mpi=pmix sets PMIX_RANK and says only by its own variables how many ranks there are. With
/// --mpi=pmi2 srun says it in both languages. A batch script has no step number (SLURM_STEP_ID), and promises nothing.
/// Under srun MPI starts only if the step has variables of PMIx or PMI as well.
[[nodiscard]] Launcher find_launcher(const Environment& environment = Environment{});

/// Throws InvalidArgument, with the right command line, if the launcher promised several processes and this one is
/// alone, because the MPI world has one process or the launcher starts no MPI. Every process would otherwise train alone
/// without a message.
void require_world_size(const Launcher& launcher, std::size_t world_size);

/// A sentence when the process runs directly in a Slurm batch script, or an interactive allocation, that has several
/// tasks: it may be meant so, and then it is alone.
[[nodiscard]] std::optional<std::string> launcher_note(const Environment& environment = Environment{});

}  // namespace dist

#ifndef DIST_COMPILED
#include <dist/cluster/launcher.ipp>
#endif
