#include <dist/cluster/mpi/roles_resolver.hpp>

#include <doctest/doctest.h>

#include <string>

#include <dist/cluster/cluster_resolver.hpp>
#include <dist/cluster/validate.hpp>
#include <dist/server/served.hpp>

#include "support/what_throws.hpp"

using dist::ClusterSpec;
using dist::Environment;
using dist::MpiRolesResolver;
using dist::Task;
using dist::TaskType;
using support::what_throws;

static_assert(dist::ClusterResolver<MpiRolesResolver>);

TEST_CASE("rank 0 is the chief, the last ranks are the parameter servers, those between are workers") {
  const ClusterSpec expected{{TaskType::chief, {"rank-0:1"}},
                             {TaskType::worker, {"rank-1:1", "rank-2:1", "rank-3:1"}},
                             {TaskType::parameter_server, {"rank-4:1", "rank-5:1"}}};
  const Task tasks[] = {{TaskType::chief, 0},  {TaskType::worker, 0},           {TaskType::worker, 1},
                        {TaskType::worker, 2}, {TaskType::parameter_server, 0}, {TaskType::parameter_server, 1}};
  for (std::size_t rank = 0; rank < 6; ++rank) {
    const MpiRolesResolver mpirun{
        {.parameter_servers = 2},
        Environment{{{"OMPI_COMM_WORLD_SIZE", "6"}, {"OMPI_COMM_WORLD_RANK", std::to_string(rank)}}}};
    CHECK(mpirun.cluster_spec() == expected);
    CHECK(mpirun.task() == tasks[rank]);
    CHECK(mpirun.describe() == "Open MPI's mpirun");
    CHECK_NOTHROW(validate_parameter_servers(mpirun.cluster_spec(), mpirun.task(), mpirun.describe()));
  }
}

TEST_CASE("srun and a world that is there already give roles, too") {
  Environment::Variables step{{"SLURM_STEP_ID", "0"}, {"SLURM_STEP_NUM_TASKS", "3"}, {"SLURM_PROCID", "2"}};
  CHECK_THROWS_AS(static_cast<void>(MpiRolesResolver({}, Environment{step}).task()), dist::InvalidArgument);
  step["PMIX_RANK"] = "2";
  const MpiRolesResolver srun{{}, Environment{step}};
  CHECK(srun.task() == Task{TaskType::parameter_server, 0});
  CHECK(srun.describe() == "Slurm's srun");
  const MpiRolesResolver world{4, 2, {}};
  CHECK(world.task() == Task{TaskType::worker, 1});
  CHECK(dist::server::served_by(world.cluster_spec(), world.describe()).size() == 3);
  CHECK(dist::server::served_by(world.cluster_spec(), world.describe())[0].endpoint == dist::mpi::endpoint_of_rank(1));
  CHECK_FALSE(world.num_accelerators());
}

TEST_CASE("without a launcher, and with too few processes, there are no roles") {
  using dist::InvalidArgument;
  const MpiRolesResolver none{{.parameter_servers = 2}, Environment{Environment::Variables{}}};
  const std::string expected =
      "No launcher of MPI has started this process (its variables, such as OMPI_COMM_WORLD_SIZE, are not set). Start "
      "with "
      "mpirun -n 5 PROGRAM, or more processes.";
  CHECK(what_throws<InvalidArgument>([&] { return none.cluster_spec(); }) == expected);
  CHECK(what_throws<InvalidArgument>([&] { return none.task(); }) == expected);
  CHECK(none.describe() == "no launcher");
  CHECK(
      what_throws<InvalidArgument>([] { return MpiRolesResolver(3, 0, {.parameter_servers = 2}).cluster_spec(); }) ==
      "MPI has started too few processes (3 of them, for a chief, at least one worker and 2 parameter servers). Start "
      "with mpirun -n 5 PROGRAM, or more processes.");
  CHECK(what_throws<InvalidArgument>([] { return MpiRolesResolver(3, 0, {.parameter_servers = 0}).task(); }) ==
        "A job with parameter servers was given none (parameter_servers is 0). Give the number of parameter servers to "
        "dist::MpiRolesResolver.");
  CHECK(
      what_throws<InvalidArgument>([] { return MpiRolesResolver(3, 3, {}).task(); }) ==
      "The rank that MPI gave cannot be used (rank 3 of 3 (MPI_COMM_WORLD)). Ranks count from 0 to the size less 1; do "
      "not change the launcher's variables.");
}
