#include <dist/cluster/cluster_spec.hpp>

#include <doctest/doctest.h>

#include <optional>
#include <vector>

#include <dist/core/error.hpp>

using dist::ClusterSpec;
using dist::InvalidArgument;
using dist::Task;
using dist::TaskType;

namespace {

constexpr Task chief{TaskType::chief, 0};
constexpr Task evaluator{TaskType::evaluator, 0};
constexpr Task server{TaskType::parameter_server, 0};
constexpr Task worker(std::size_t index) { return {TaskType::worker, index}; }

const ClusterSpec workers{{TaskType::worker, {"a:1", "b:1", "c:1"}}};
const ClusterSpec all{{TaskType::chief, {"a:1"}},
                      {TaskType::worker, {"b:1", "c:1"}},
                      {TaskType::parameter_server, {"d:1"}},
                      {TaskType::evaluator, {"e:1"}}};

}  // namespace

TEST_CASE("is_chief holds for the chief, else worker 0 (spec M09)") {
  CHECK(is_chief(all, chief));
  CHECK_FALSE(is_chief(all, worker(0)));
  CHECK_FALSE(is_chief(all, worker(1)));
  CHECK_FALSE(is_chief(all, server));
  CHECK(is_chief(all, evaluator));
  CHECK(is_chief(workers, worker(0)));
  CHECK_FALSE(is_chief(workers, worker(1)));
  CHECK(is_chief(workers, evaluator));
  CHECK(is_chief({}, worker(3)));
}

TEST_CASE("is_chief refuses a task outside the cluster (spec M09)") {
  CHECK_THROWS_WITH_AS(
      is_chief(workers, worker(3)),
      "The cluster has no worker 3 (it has 3 of that type, the last is worker 2). Use a task that the cluster lists.",
      InvalidArgument);
  CHECK_THROWS_AS(is_chief(workers, chief), InvalidArgument);
}

TEST_CASE("only the chief writes checkpoints and summaries (spec A15)") {
  CHECK(should_checkpoint(all, chief));
  CHECK(should_save_summary(all, chief));
  CHECK_FALSE(should_checkpoint(all, worker(0)));
  CHECK_FALSE(should_save_summary(all, worker(0)));
}

TEST_CASE("worker_count includes the chief (spec M10)") {
  CHECK(worker_count(all, TaskType::worker) == 3);
  CHECK(worker_count(all, TaskType::chief) == 3);
  CHECK(worker_count(all, TaskType::evaluator) == 1);
  CHECK(worker_count(workers, TaskType::worker) == 3);
  for (const TaskType type : {TaskType::chief, TaskType::worker})
    CHECK_THROWS_AS(worker_count({}, type), InvalidArgument);
  CHECK_THROWS_AS(worker_count(workers, TaskType::chief), InvalidArgument);
  CHECK(worker_count(workers, TaskType::evaluator) == 0);
  CHECK_THROWS_WITH_AS(worker_count(all, TaskType::parameter_server),
                       "Parameter servers were counted as workers (they hold variables and do not train). Use the type "
                       "chief, worker or evaluator.",
                       InvalidArgument);
}

TEST_CASE("the chief is worker number 0, followed by the workers (spec M11)") {
  CHECK(id_in_cluster(all, chief) == 0);
  CHECK(id_in_cluster(all, worker(0)) == 1);
  CHECK(id_in_cluster(all, worker(1)) == 2);
  CHECK(id_in_cluster(all, evaluator) == 0);
  CHECK(id_in_cluster(workers, worker(2)) == 2);
  CHECK_THROWS_AS(id_in_cluster({}, worker(0)), InvalidArgument);
  CHECK_THROWS_AS(id_in_cluster(workers, worker(3)), InvalidArgument);
  CHECK_THROWS_WITH_AS(
      id_in_cluster(all, server),
      "No worker number exists for ps 0 (parameter servers are not workers). Use the chief, a worker or an evaluator.",
      InvalidArgument);
}

TEST_CASE("a cluster with two chiefs or two evaluators is refused by all role functions (spec M08)") {
  const ClusterSpec chiefs{{TaskType::chief, {"a:1", "b:1"}}, {TaskType::worker, {"c:1"}}};
  const ClusterSpec evaluators{{TaskType::worker, {"a:1"}}, {TaskType::evaluator, {"b:1", "c:1"}}};
  CHECK_THROWS_WITH_AS(
      id_in_cluster(chiefs, worker(0)),
      "The cluster lists more than one chief (2 tasks; at most one is allowed). List the others under 'worker'.",
      InvalidArgument);
  CHECK_THROWS_AS(id_in_cluster(chiefs, chief), InvalidArgument);
  CHECK_THROWS_AS(is_chief(chiefs, chief), InvalidArgument);
  CHECK_THROWS_AS(worker_count(chiefs, TaskType::worker), InvalidArgument);
  CHECK_THROWS_AS(id_in_cluster(evaluators, worker(0)), InvalidArgument);
}

TEST_CASE("sync_tasks returns tasks in the order of worker numbers (spec M11)") {
  CHECK(sync_tasks(all) == std::vector{chief, worker(0), worker(1)});
  CHECK(sync_tasks(workers) == std::vector{worker(0), worker(1), worker(2)});
  CHECK(dist::sync_tasks({}).empty());
  for (const ClusterSpec& cluster : {workers, all}) {
    const std::vector<Task> tasks = sync_tasks(cluster);
    for (std::size_t rank = 0; rank < tasks.size(); ++rank) CHECK(id_in_cluster(cluster, tasks[rank]) == rank);
  }
}

TEST_CASE("the collective leader is the chief, else worker 0 (spec M12)") {
  CHECK(collective_leader(all, TaskType::worker) == chief);
  CHECK(collective_leader(workers, TaskType::worker) == worker(0));
  CHECK(collective_leader(all, TaskType::evaluator) == std::nullopt);
  CHECK(collective_leader({}, TaskType::worker) == std::nullopt);
}

TEST_CASE("the coordination leader is a parameter server, else the chief, else worker 0 (spec M13)") {
  CHECK(coordination_leader(all) == server);
  CHECK(coordination_leader(workers) == worker(0));
  CHECK(dist::coordination_leader({{TaskType::chief, {"a:1"}}, {TaskType::worker, {"b:1"}}}) == chief);
  CHECK(dist::coordination_leader({}) == std::nullopt);
}
