#include <dist/cluster/cluster_spec.hpp>

#include <doctest/doctest.h>

#include <dist/core/error.hpp>

using dist::ClusterSpec;
using dist::Task;
using dist::TaskType;

TEST_CASE("task_endpoint returns the listed address, and names the task of an invalid one") {
  const ClusterSpec cluster{{TaskType::worker, {"a:1", "[::1]:22"}}, {TaskType::parameter_server, {"here"}}};
  CHECK(task_endpoint(cluster, Task{TaskType::worker, 0}, "a test") == dist::net::Endpoint{"a", "1"});
  CHECK(task_endpoint(cluster, Task{TaskType::worker, 1}, "a test") == dist::net::Endpoint{"::1", "22"});
  CHECK_THROWS_WITH_AS((void)task_endpoint(cluster, Task{TaskType::parameter_server, 0}, "a test"),
                       doctest::Contains("ps 0 of a test"), dist::InvalidArgument);
}
