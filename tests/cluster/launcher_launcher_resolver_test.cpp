#include <dist/cluster/launcher.hpp>

#include <doctest/doctest.h>

#include <dist/cluster/cluster_resolver.hpp>
#include <dist/cluster/cluster_spec.hpp>
#include <dist/cluster/validate.hpp>
#include <dist/core/error.hpp>

using dist::ClusterSpec;
using dist::Environment;
using dist::InvalidArgument;
using dist::LauncherResolver;
using dist::Task;
using dist::TaskType;

static_assert(dist::ClusterResolver<LauncherResolver>);

TEST_CASE("ranks are workers, and worker 0 is the chief (spec M09)") {
  const LauncherResolver mpirun{Environment{{{"OMPI_COMM_WORLD_SIZE", "3"}, {"OMPI_COMM_WORLD_RANK", "1"}}}};
  CHECK(mpirun.cluster_spec() == ClusterSpec{{TaskType::worker, {"", "", ""}}});
  CHECK(mpirun.task() == Task{TaskType::worker, 1});
  CHECK(mpirun.describe() == "Open MPI's mpirun");
  CHECK_FALSE(mpirun.num_accelerators());
  CHECK(is_chief(mpirun.cluster_spec(), Task{TaskType::worker, 0}));
  CHECK_FALSE(is_chief(mpirun.cluster_spec(), *mpirun.task()));
  CHECK_NOTHROW(validate_multi_worker(mpirun.cluster_spec(), mpirun.task(), mpirun.describe()));
}

TEST_CASE("an existing MPI world is a cluster") {
  const LauncherResolver world{2, 1};
  CHECK(world.cluster_spec().num_tasks(TaskType::worker) == 2);
  CHECK(world.task() == Task{TaskType::worker, 1});
  CHECK(world.describe() == "MPI");
}

TEST_CASE("without a launcher, or without a size, the cluster is empty (spec A08)") {
  for (const Environment& environment :
       {Environment{Environment::Variables{}}, Environment{{{"PMIX_RANK", "1"}}}, Environment{{{"PMI_SIZE", "2"}}}}) {
    const LauncherResolver none{environment};
    CHECK(none.cluster_spec().empty());
    CHECK_FALSE(none.task());
  }
  CHECK(LauncherResolver{Environment{Environment::Variables{}}}.describe() == "no launcher");
}

TEST_CASE("a rank out of range is refused") {
  CHECK_THROWS_WITH_AS((LauncherResolver{2, 2}),
                       "The rank that MPI gave cannot be used (rank 2 of 2 (MPI_COMM_WORLD)). Ranks count from 0 to "
                       "the size minus 1; do not change the launcher's variables.",
                       InvalidArgument);
  CHECK_THROWS_AS(LauncherResolver(Environment{{{"WORLD_SIZE", "2"}, {"RANK", "5"}}}), InvalidArgument);
}
