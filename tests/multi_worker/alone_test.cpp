// A process without launcher and cluster: it trains alone, and never needs MPI.
#include <dist/multi_worker.hpp>

#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include <dist/cluster/cluster_resolver.hpp>
#include <dist/comm/mpi/mpi_all_reduce.hpp>
#include <dist/comm/ring_all_reduce.hpp>
#include <dist/data/batch.hpp>
#include <dist/data/distributed_dataset.hpp>
#include <dist/data/range.hpp>

#include <doctest/doctest.h>
#include <support/stderr_of.hpp>

using dist::Task;
using dist::TaskType;
using Ring = dist::MultiWorker<dist::RingAllReduce>;

namespace {

/// Removes the environment of launchers and clusters.
void forget_launchers() {
  std::vector<std::string> names{"TF_CONFIG", "WORLD_SIZE", "RANK"};
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string name{*variable, std::string{*variable}.find('=')};
    for (const char* const launcher : {"OMPI_", "PMI_", "PMIX_", "SLURM_"})
      if (name.starts_with(launcher)) names.push_back(name);
  }
  for (const std::string& name : names) unsetenv(name.c_str());
}
bool mpi_was_started() {
  int initialised = 0;
  MPI_Initialized(&initialised);
  return initialised != 0;
}

/// Uses all functions that communicate if there are several workers.
template <class S>
void use(S& strategy) {
  CHECK(strategy.num_workers() == 1);
  CHECK(strategy.worker_rank() == 0);
  CHECK(strategy.is_chief());
  const std::size_t replicas = strategy.num_local_replicas();
  CHECK(strategy.num_replicas_in_sync() == replicas);
  const auto sums = strategy.run([](auto& replica) { return replica.all_reduce(dist::sum, 5.0F); });
  CHECK(strategy.reduce(dist::max, sums) == 5 * static_cast<float>(replicas));
  const auto variable = strategy.template variable<float>({2}, 3.0F);
  CHECK(variable.component(strategy.scope(), replicas - 1)[1] == 3);
  auto batches = strategy.distribute_dataset(dist::data::range(10) | dist::data::batch(4));
  std::size_t steps = 0;
  for ([[maybe_unused]] auto&& batch : batches) ++steps;
  CHECK(steps == 3);
}

}  // namespace

TEST_CASE_TEMPLATE("without a cluster and a launcher, a process is alone and does not start MPI (spec A08)", Ops,
                   dist::RingAllReduce, dist::MpiAllReduce) {
  forget_launchers();
  for (const std::size_t replicas : {std::size_t{1}, std::size_t{2}}) {
    dist::MultiWorker<Ops> strategy{replicas};
    CHECK(strategy.num_local_replicas() == replicas);
    CHECK_FALSE(strategy.task());
    CHECK(strategy.describe().find("worker 0 of 1 on 1 node (no other workers)") != std::string::npos);
    use(strategy);
  }
  CHECK(Ring{}.num_local_replicas() == 1);
  CHECK_FALSE(mpi_was_started());
}

TEST_CASE("a chief without a cluster reports that it trains alone") {
  forget_launchers();
  const auto said = [](std::optional<Task> task) {
    return testing::stderr_of([&] {
             dist::WorkerGroup{dist::SimpleResolver{{}, task}, std::chrono::seconds{60}};
           })
        .stderr_text;
  };
  CHECK(said(Task{TaskType::chief, 0})
            .find("identifies this process as chief 0, but lists no cluster: the process trains alone") !=
        std::string::npos);
  CHECK(said(std::nullopt).empty());
  CHECK(said(Task{TaskType::evaluator, 0}).empty());
}

TEST_CASE("a cluster of one worker does not wait for others (spec A08, A09)") {
  forget_launchers();
  const Task only{TaskType::worker, 0};
  Ring strategy{dist::SimpleResolver{{{TaskType::worker, {"127.0.0.1:2222"}}}, only}};
  CHECK(strategy.task() == only);
  use(strategy);
  CHECK_FALSE(mpi_was_started());
}

TEST_CASE("an evaluator is alone and its own chief, for any workers (spec A09, M09)") {
  forget_launchers();
  const dist::ClusterSpec cluster{{TaskType::chief, {"127.0.0.1:2222"}},
                                  {TaskType::worker, {"127.0.0.1:2223", "127.0.0.1:2224"}},
                                  {TaskType::evaluator, {"127.0.0.1:2225"}}};
  const Task evaluator{TaskType::evaluator, 0};
  Ring strategy{dist::SimpleResolver{cluster, evaluator}};
  CHECK(strategy.task() == evaluator);
  use(strategy);
  CHECK_FALSE(mpi_was_started());
}
