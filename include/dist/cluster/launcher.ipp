#pragma once

#include <dist/cluster/launcher.hpp>

namespace dist {

DIST_INLINE Launcher find_launcher(const Environment& environment) {
  const auto launched = [&](Launcher::Kind kind, const char* name, const char* size, const char* rank) {
    return Launcher{kind, name, environment.number(size), environment.number(rank), size, true};
  };
  const auto has = [&](const char* name) { return environment.get(name).has_value(); };
  using Kind = Launcher::Kind;
  if (has("OMPI_COMM_WORLD_SIZE"))
    return launched(Kind::open_mpi, "Open MPI's mpirun", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK");
  if (has("PMI_SIZE")) {
    const bool srun = has("SLURM_STEP_ID") && environment.get("SLURM_STEP_NUM_TASKS") == environment.get("PMI_SIZE");
    return launched(srun ? Kind::slurm : Kind::pmi, srun ? "Slurm's srun" : "PMI's launcher", "PMI_SIZE", "PMI_RANK");
  }
  if (has("SLURM_STEP_ID") && has("SLURM_STEP_NUM_TASKS")) {
    Launcher srun = launched(Kind::slurm, "Slurm's srun", "SLURM_STEP_NUM_TASKS", "SLURM_PROCID");
    srun.starts_mpi = has("PMIX_RANK") || has("PMI_RANK");
    return srun;
  }
  if (has("PMIX_RANK"))
    return Launcher{Kind::pmix, "PMIx's launcher", std::nullopt, environment.number("PMIX_RANK"), "PMIX_RANK", true};
  if (has("WORLD_SIZE") && has("RANK"))
    return Launcher{Kind::torchrun, "torchrun", environment.number("WORLD_SIZE"), environment.number("RANK"),
                    "WORLD_SIZE"};
  return {};
}

DIST_INLINE void require_world_size(const Launcher& launcher, std::size_t world_size) {
  if (world_size != 1 || launcher.world_size.value_or(1) <= 1) return;
  const std::size_t promised = *launcher.world_size;
  const auto suggestion = [&]() -> std::string {
    switch (launcher.kind) {
      case Launcher::Kind::slurm:
        return concat("Start with srun --mpi=pmix -n ", promised,
                      " PROGRAM (srun --mpi=list shows what this Slurm supports; pmi2 is for MPICH)");
      case Launcher::Kind::torchrun:
        return concat("Set MASTER_ADDR and MASTER_PORT as torchrun does, start with mpirun -n ", promised,
                      " PROGRAM, or give every process its TF_CONFIG");
      default:
        return concat("The program was built with a different MPI than this mpirun: start it with mpirun.openmpi -n ",
                      promised, " PROGRAM, or with the mpirun of the mpicxx that built it");
    }
  };
  throw InvalidArgument(
      concat(launcher.name, " announced ", promised, " processes, but this one is alone"),
      concat(launcher.evidence, "=", promised, ", but ",
             launcher.kind == Launcher::Kind::slurm && !launcher.starts_mpi ? "the step has no variables of PMIx or PMI"
                                                                            : "the size of MPI_COMM_WORLD is 1"),
      suggestion());
}

DIST_INLINE std::optional<std::string> launcher_note(const Environment& environment) {
  const std::size_t tasks = environment.number("SLURM_NTASKS").value_or(1);
  if (tasks <= 1 || find_launcher(environment).kind != Launcher::Kind::none) return std::nullopt;
  return concat("SLURM_NTASKS=", tasks, ", but srun did not start this process: it runs alone. For ", tasks,
                " workers, use srun --mpi=pmix -n ", tasks, " PROGRAM.");
}

}  // namespace dist
