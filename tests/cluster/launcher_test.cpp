#include <dist/cluster/launcher.hpp>

#include <doctest/doctest.h>

#include <optional>
#include <string>

#include <dist/core/error.hpp>

using dist::Environment;
using dist::find_launcher;
using dist::InvalidArgument;
using dist::Launcher;

namespace {

// The relevant parts of recorded environments.
const Environment mpirun_open_mpi{{{"OMPI_COMM_WORLD_SIZE", "4"},
                                   {"OMPI_COMM_WORLD_RANK", "3"},
                                   {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                                   {"PMIX_RANK", "3"},
                                   {"PMIX_NAMESPACE", "1234567169"}}};
const Environment mpirun_mpich{{{"PMI_SIZE", "2"}, {"PMI_RANK", "1"}, {"PMI_FD", "9"}, {"MPI_LOCALRANKID", "1"}}};
const Environment srun_pmix{{{"SLURM_JOB_ID", "7"},
                             {"SLURM_NTASKS", "2"},
                             {"SLURM_STEP_ID", "0"},
                             {"SLURM_STEP_NUM_TASKS", "2"},
                             {"SLURM_PROCID", "1"},
                             {"PMIX_RANK", "1"},
                             {"PMIX_NAMESPACE", "slurm.pmix.7.0"}}};
const Environment srun_plain{
    {{"SLURM_NTASKS", "2"}, {"SLURM_STEP_ID", "0"}, {"SLURM_STEP_NUM_TASKS", "2"}, {"SLURM_PROCID", "0"}}};
const Environment srun_pmi2{{{"SLURM_NTASKS", "2"},
                             {"SLURM_STEP_ID", "0"},
                             {"SLURM_STEP_NUM_TASKS", "2"},
                             {"SLURM_PROCID", "1"},
                             {"PMI_FD", "12"},
                             {"PMI_RANK", "1"},
                             {"PMI_SIZE", "2"}}};
// MPICH's mpirun in a batch script on two nodes, with proxies started by srun.
const Environment hydra_in_slurm{{{"SLURM_STEP_ID", "0"},
                                  {"SLURM_STEP_NUM_TASKS", "2"},
                                  {"SLURM_PROCID", "1"},
                                  {"PMI_RANK", "7"},
                                  {"PMI_SIZE", "8"}}};
const Environment batch_script{{{"SLURM_JOB_ID", "7"}, {"SLURM_NTASKS", "4"}, {"SLURM_PROCID", "0"}}};
// mpirun in a batch script, with one daemon per node started by srun.
const Environment mpirun_in_slurm{{{"SLURM_NTASKS", "4"},
                                   {"SLURM_STEP_ID", "0"},
                                   {"SLURM_STEP_NUM_TASKS", "1"},
                                   {"SLURM_PROCID", "0"},
                                   {"OMPI_COMM_WORLD_SIZE", "4"},
                                   {"OMPI_COMM_WORLD_RANK", "2"}}};
const Environment pmix_only{{{"PMIX_RANK", "2"}, {"PMIX_NAMESPACE", "job"}}};
const Environment torchrun{
    {{"WORLD_SIZE", "8"}, {"RANK", "5"}, {"LOCAL_RANK", "1"}, {"MASTER_ADDR", "node0"}, {"MASTER_PORT", "29500"}}};

void check(const Environment& environment, Launcher::Kind kind, std::optional<std::size_t> size,
           std::optional<std::size_t> rank) {
  const Launcher launcher = find_launcher(environment);
  CHECK(launcher.kind == kind);
  CHECK(launcher.world_size == size);
  CHECK(launcher.rank == rank);
}
void refuse(const Environment& environment, const std::string& message) {
  CHECK_THROWS_WITH_AS(require_world_size(find_launcher(environment), 1), message.c_str(), InvalidArgument);
}

}  // namespace

TEST_CASE("launchers are detected by their variables") {
  check(mpirun_open_mpi, Launcher::Kind::open_mpi, 4, 3);
  check(mpirun_mpich, Launcher::Kind::pmi, 2, 1);
  check(srun_pmix, Launcher::Kind::slurm, 2, 1);
  check(srun_plain, Launcher::Kind::slurm, 2, 0);
  check(srun_pmi2, Launcher::Kind::slurm, 2, 1);
  check(hydra_in_slurm, Launcher::Kind::pmi, 8, 7);
  check(mpirun_in_slurm, Launcher::Kind::open_mpi, 4, 2);
  check(pmix_only, Launcher::Kind::pmix, std::nullopt, 2);
  check(torchrun, Launcher::Kind::torchrun, 8, 5);
  check(batch_script, Launcher::Kind::none, std::nullopt, std::nullopt);
  check(Environment{Environment::Variables{}}, Launcher::Kind::none, std::nullopt, std::nullopt);
  check(Environment{{{"WORLD_SIZE", "8"}}}, Launcher::Kind::none, std::nullopt, std::nullopt);
}

TEST_CASE("a launcher makes a world if it starts MPI in several processes") {
  for (const Environment& several :
       {mpirun_open_mpi, mpirun_mpich, srun_pmix, srun_pmi2, hydra_in_slurm, mpirun_in_slurm, pmix_only})
    CHECK(find_launcher(several).makes_world());
  // srun --pty bash in an allocation of several tasks, with and without PMIx, and a shell under mpirun
  const Environment step_of_one{{{"SLURM_NTASKS", "4"}, {"SLURM_STEP_ID", "0"}, {"SLURM_STEP_NUM_TASKS", "1"}}};
  const Environment step_with_pmix{{{"SLURM_STEP_ID", "0"}, {"SLURM_STEP_NUM_TASKS", "1"}, {"PMIX_RANK", "0"}}};
  const Environment mpirun_of_one{{{"OMPI_COMM_WORLD_SIZE", "1"}, {"OMPI_COMM_WORLD_RANK", "0"}, {"PMIX_RANK", "0"}}};
  for (const Environment& other : {srun_plain, step_of_one, step_with_pmix, mpirun_of_one, torchrun, batch_script})
    CHECK_FALSE(find_launcher(other).makes_world());
  CHECK_NOTHROW(require_world_size(find_launcher(step_of_one), 1));
}

TEST_CASE("a variable that is not a number is named") {
  CHECK_THROWS_WITH_AS(find_launcher(Environment{{{"OMPI_COMM_WORLD_SIZE", "many"}}}),
                       "The environment variable OMPI_COMM_WORLD_SIZE has a value that cannot be used ('many' is not a "
                       "whole number). Set it to a number, or unset OMPI_COMM_WORLD_SIZE.",
                       InvalidArgument);
}

TEST_CASE("a world of one process under a launcher of several is refused, with the correct command line") {
  refuse(mpirun_open_mpi,
         "Open MPI's mpirun announced 4 processes, but this one is alone (OMPI_COMM_WORLD_SIZE=4, but the size of "
         "MPI_COMM_WORLD is 1). The program was built with a different MPI than this mpirun: start it with "
         "mpirun.openmpi -n 4 PROGRAM, or with the mpirun of the mpicxx that built it.");
  refuse(mpirun_mpich,
         "PMI's launcher announced 2 processes, but this one is alone (PMI_SIZE=2, but the size of MPI_COMM_WORLD is "
         "1). The program was built with a different MPI than this mpirun: start it with mpirun.openmpi -n 2 PROGRAM, "
         "or with the mpirun of the mpicxx that built it.");
  refuse(srun_plain,
         "Slurm's srun announced 2 processes, but this one is alone (SLURM_STEP_NUM_TASKS=2, but the step has no "
         "variables of PMIx or PMI). Start with srun --mpi=pmix -n 2 PROGRAM (srun --mpi=list shows what this Slurm "
         "supports; pmi2 is for MPICH).");
  refuse(torchrun,
         "torchrun announced 8 processes, but this one is alone (WORLD_SIZE=8, but the size of MPI_COMM_WORLD is 1). "
         "Set MASTER_ADDR and MASTER_PORT as torchrun does, start with mpirun -n 8 PROGRAM, or give every process its "
         "TF_CONFIG.");
}

TEST_CASE("a world of the expected size, or without a launcher, is accepted") {
  CHECK_NOTHROW(require_world_size(find_launcher(mpirun_open_mpi), 4));
  CHECK_NOTHROW(require_world_size(find_launcher(srun_pmix), 2));
  for (const Environment& alone : {batch_script, pmix_only, Environment{Environment::Variables{}},
                                   Environment{{{"OMPI_COMM_WORLD_SIZE", "1"}, {"OMPI_COMM_WORLD_RANK", "0"}}}})
    CHECK_NOTHROW(require_world_size(find_launcher(alone), 1));
}

TEST_CASE("a process that runs directly in a batch script causes a note only") {
  CHECK(dist::launcher_note(batch_script) ==
        "SLURM_NTASKS=4, but srun did not start this process: it runs alone. For 4 workers, use srun --mpi=pmix -n 4 "
        "PROGRAM.");
  for (const Environment& other :
       {srun_pmix, mpirun_in_slurm, Environment{Environment::Variables{}}, Environment{{{"SLURM_NTASKS", "1"}}}})
    CHECK_FALSE(dist::launcher_note(other));
}
