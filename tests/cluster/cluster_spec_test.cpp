#include <dist/cluster/cluster_spec.hpp>

#include <doctest/doctest.h>

#include <concepts>
#include <cstddef>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <dist/core/error.hpp>

using dist::ClusterSpec;
using dist::InvalidArgument;
using dist::Task;
using dist::TaskType;

// A cluster consists of tasks only; other types do not convert to one (spec M07).
static_assert(!std::convertible_to<std::string, ClusterSpec> && !std::constructible_from<ClusterSpec, int>);

TEST_CASE("a cluster lists jobs, tasks and addresses (spec M06, M07)") {
  const ClusterSpec cluster{{TaskType::worker, {"b:1", "c:1"}}, {TaskType::chief, {"a:1"}}};
  CHECK_FALSE(cluster.empty());
  CHECK(cluster.jobs() == std::vector{TaskType::chief, TaskType::worker});
  CHECK(cluster.num_tasks(TaskType::worker) == 2);
  CHECK(cluster.num_tasks(TaskType::evaluator) == 0);
  CHECK(cluster.task_indices(TaskType::worker) == std::vector<std::size_t>{0, 1});
  CHECK(cluster.job_tasks(TaskType::worker) == std::vector<std::string>{"b:1", "c:1"});
  CHECK(cluster.task_address({TaskType::worker, 1}) == "c:1");
  CHECK(cluster.tasks() == std::vector{Task{TaskType::chief, 0}, Task{TaskType::worker, 0}, Task{TaskType::worker, 1}});
  CHECK(cluster.has(TaskType::chief));
  CHECK_FALSE(cluster.has(TaskType::parameter_server));
  CHECK(cluster.has(Task{TaskType::worker, 1}));
  CHECK_FALSE(cluster.has(Task{TaskType::worker, 2}));
}

TEST_CASE("a cluster may be empty (spec M04)") {
  const ClusterSpec none;
  CHECK(none.empty());
  CHECK(none.jobs().empty());
  CHECK(none == ClusterSpec{{TaskType::worker, {}}});
}

TEST_CASE("indices may have gaps (spec M06)") {
  ClusterSpec cluster;
  cluster.add({TaskType::worker, 7}, "h:1");
  cluster.add({TaskType::worker, 3}, "d:1");
  CHECK(cluster.task_indices(TaskType::worker) == std::vector<std::size_t>{3, 7});
  CHECK(cluster.job_tasks(TaskType::worker) == std::vector<std::string>{"d:1", "h:1"});
  CHECK_FALSE(cluster.is_contiguous(TaskType::worker));
  CHECK(cluster.is_contiguous(TaskType::chief));
  cluster.append(TaskType::chief, {"a:1"});
  CHECK(cluster.is_contiguous(TaskType::chief));
}

TEST_CASE("missing and duplicate tasks are named (spec M06)") {
  ClusterSpec cluster{{TaskType::worker, {"a:1", "b:1"}}};
  CHECK_THROWS_WITH_AS(
      cluster.task_address({TaskType::worker, 2}),
      "The cluster has no worker 2 (it has 2 of that type, the last is worker 1). Use a task that the cluster lists.",
      InvalidArgument);
  CHECK_THROWS_WITH_AS(
      cluster.task_address({TaskType::chief, 0}),
      "The cluster has no chief 0 (it has no task of type 'chief'). Use a task that the cluster lists.",
      InvalidArgument);
  CHECK_THROWS_WITH_AS(cluster.add({TaskType::worker, 1}, "c:1"),
                       "The cluster lists worker 1 twice (at 'b:1' and at 'c:1'). Give every task its own index.",
                       InvalidArgument);
}

TEST_CASE("checksums are equal for equal lists only") {
  const ClusterSpec cluster{{TaskType::worker, {"a:1", "b:1"}}};
  ClusterSpec same;
  same.add({TaskType::worker, 1}, "b:1");
  same.add({TaskType::worker, 0}, "a:1");
  CHECK(same == cluster);
  CHECK(same.checksum() == cluster.checksum());

  const std::vector<ClusterSpec> others{{},
                                        {{TaskType::worker, {"b:1", "a:1"}}},
                                        {{TaskType::worker, {"a:1", "b:2"}}},
                                        {{TaskType::worker, {"a:1b:1"}}},
                                        {{TaskType::worker, {"a:1b", ":1"}}},
                                        {{TaskType::worker, {"a:1"}}, {TaskType::evaluator, {"b:1"}}},
                                        {{TaskType::chief, {"a:1"}}, {TaskType::worker, {"b:1"}}}};
  std::set<std::uint64_t> sums{cluster.checksum()};
  for (const ClusterSpec& each : others) {
    CHECK_FALSE(each == cluster);
    CHECK(sums.insert(each.checksum()).second);
  }
}
