#include <dist/cluster/cluster_spec.hpp>

#include <doctest/doctest.h>

using dist::Task;
using dist::TaskType;

TEST_CASE("tasks have the names of TF_CONFIG (spec M08)") {
  CHECK(to_string(Task{TaskType::chief, 0}) == "chief 0");
  CHECK(to_string(Task{TaskType::worker, 2}) == "worker 2");
  CHECK(to_string(Task{TaskType::parameter_server, 1}) == "ps 1");
  CHECK(to_string(Task{TaskType::evaluator, 0}) == "evaluator 0");
  for (const TaskType type : dist::task_types) CHECK(dist::task_type_named(to_string(type)) == type);
}

TEST_CASE("master is the chief, and unknown names are refused (spec M08)") {
  CHECK(dist::task_type_named("master") == TaskType::chief);
  for (const char* name : {"", "Worker", "workers", "parameter_server", "localhost"})
    CHECK_FALSE(dist::task_type_named(name));
}

TEST_CASE("tasks are ordered by type, then by index") {
  CHECK(Task{TaskType::chief, 5} < Task{TaskType::worker, 0});
  CHECK(Task{TaskType::worker, 1} < Task{TaskType::worker, 2});
  CHECK(Task{TaskType::worker, 1} == Task{TaskType::worker, 1});
}
