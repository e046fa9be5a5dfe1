#include <dist/cluster/validate.hpp>

#include <doctest/doctest.h>

#include <optional>
#include <string>
#include <vector>

#include <dist/core/error.hpp>

using dist::ClusterSpec;
using dist::InvalidArgument;
using dist::Task;
using dist::TaskType;

namespace {

constexpr Task worker_0{TaskType::worker, 0};

void refuse(const ClusterSpec& cluster, std::optional<Task> task, const std::string& message) {
  CHECK_THROWS_WITH_AS(validate_cluster(cluster, task, "TF_CONFIG"), message.c_str(), InvalidArgument);
  CHECK_THROWS_WITH_AS(validate_multi_worker(cluster, task, "TF_CONFIG"), message.c_str(), InvalidArgument);
}
void refuse_multi_worker(const ClusterSpec& cluster, Task task, const std::string& message) {
  CHECK_NOTHROW(validate_cluster(cluster, task, "TF_CONFIG"));
  CHECK_THROWS_WITH_AS(validate_multi_worker(cluster, task, "TF_CONFIG"), message.c_str(), InvalidArgument);
}
void accept(const ClusterSpec& cluster, std::optional<Task> task) {
  CHECK_NOTHROW(validate_multi_worker(cluster, task, "TF_CONFIG"));
  CHECK_NOTHROW(validate_cluster(cluster, task, "TF_CONFIG"));
}
ClusterSpec workers(std::vector<std::string> addresses) { return {{TaskType::worker, std::move(addresses)}}; }

}  // namespace

TEST_CASE("valid clusters are accepted, including an empty one (spec M08, A08)") {
  const ClusterSpec all{{TaskType::chief, {"a:2222"}},
                        {TaskType::worker, {"a:2223", "b:2222"}},
                        {TaskType::parameter_server, {"c:2222"}},
                        {TaskType::evaluator, {"d:2222"}}};
  accept({}, std::nullopt);
  accept(all, Task{TaskType::chief, 0});
  accept(all, Task{TaskType::worker, 1});
  accept(all, Task{TaskType::evaluator, 0});
  accept(workers({"a:2222"}), Task{TaskType::evaluator, 0});  // an evaluator need not be listed
  accept(workers({"localhost:2222", "127.0.0.1:2223", "[::1]:2224"}), worker_0);
  accept(workers({"", ""}), worker_0);  // a launcher connects them
}

TEST_CASE("there is at most one chief and one evaluator (spec M08)") {
  refuse({{TaskType::chief, {"a:1", "b:1"}}}, Task{TaskType::chief, 0},
         "TF_CONFIG lists more than one chief (2 tasks; at most one is allowed). List the others under 'worker'.");
  refuse({{TaskType::worker, {"a:1"}}, {TaskType::evaluator, {"b:1", "c:1", "d:1"}}}, worker_0,
         "TF_CONFIG lists more than one evaluator (3 tasks; at most one is allowed). List one evaluator.");
}

TEST_CASE("addresses are parsed early (spec M25)") {
  refuse(workers({"a:2222", "b"}), worker_0,
         "The address 'b' of worker 1 of TF_CONFIG cannot be used (it has no port). Write host:port, such as "
         "host0.example:2222.");
  refuse(
      workers({"a:0000"}), worker_0,
      "The address 'a:0000' of worker 0 of TF_CONFIG cannot be used (no task can be reached at port 0). Write the port "
      "that the task listens on.");
  refuse(workers({"a:2222", "0.0.0.0:2222"}), worker_0,
         "The address '0.0.0.0:2222' of worker 1 of TF_CONFIG does not identify a host (it means all interfaces of the "
         "local machine). Write the name or IP address by which other hosts reach it.");
}

TEST_CASE("two tasks with the same address are refused (spec M25)") {
  refuse({{TaskType::chief, {"a:2222"}}, {TaskType::worker, {"b:2222", "A:2222"}}}, worker_0,
         "Two tasks of TF_CONFIG have the address 'A:2222' (chief 0 and worker 1). Give every task of a host its own "
         "port.");
  refuse(
      workers({"a:2222", "b:2222", ""}), worker_0,
      "Only some tasks of TF_CONFIG have an address (worker 2 has none, worker 0 has one). Write the addresses of all "
      "tasks, or only the address of the first task.");
  refuse(
      workers({"", "b:2222"}), worker_0,
      "Only some tasks of TF_CONFIG have an address (worker 0 has none, worker 1 has one). Write the addresses of all "
      "tasks, or only the address of the first task.");
}

TEST_CASE("the first task's address alone is the rendezvous") {
  CHECK_NOTHROW(validate_multi_worker(workers({"a:2222", "", ""}), worker_0, "MASTER_ADDR"));
  CHECK(workers({"a:2222", "", ""}).has_meeting_place_only());
  CHECK_FALSE(workers({"a:2222"}).has_meeting_place_only());
  CHECK_FALSE(workers({"", ""}).has_meeting_place_only());
  CHECK_FALSE(workers({"a:2222", "b:2222"}).has_meeting_place_only());
}

TEST_CASE("localhost cannot be used with several hosts (spec M25)") {
  refuse(workers({"localhost:2222", "b:2222"}), worker_0,
         "The address 'localhost:2222' of worker 0 of TF_CONFIG means a different machine on each host (worker 1 is at "
         "'b:2222'). Write a name or IP address of worker 0 that the other hosts can reach.");
  refuse(workers({"a:2222", "127.0.1.1:2222"}), worker_0,
         "The address '127.0.1.1:2222' of worker 1 of TF_CONFIG means a different machine on each host (worker 0 is at "
         "'a:2222'). Write a name or IP address of worker 1 that the other hosts can reach.");
}

TEST_CASE("a process without a task is refused (spec A09, M25)") {
  refuse(workers({"a:2222"}), std::nullopt,
         "TF_CONFIG does not specify the task of this process (it lists a cluster, but no task). Add a task type and "
         "an index, such as {\"type\": \"worker\", \"index\": 0}.");
}

TEST_CASE("a process whose task is not listed is refused (spec M08)") {
  refuse(workers({"a:2222", "b:2222"}), Task{TaskType::worker, 2},
         "This process is worker 2, but TF_CONFIG does not list it (the cluster has 2 of type 'worker', the last is "
         "worker 1). Indices count from 0; correct the index of the task, or add its address to the cluster.");
  refuse({{TaskType::worker, {"a:2222"}}, {TaskType::parameter_server, {"b:2222"}}}, Task{TaskType::chief, 0},
         "This process is chief 0, but TF_CONFIG lists no task of this type (the cluster lists 'worker', 'ps'). Add "
         "the type to the cluster, or correct the type of the task.");
}

TEST_CASE("a cluster without training tasks is refused (spec A09)") {
  refuse_multi_worker({{TaskType::parameter_server, {"a:2222"}}}, Task{TaskType::parameter_server, 0},
                      "TF_CONFIG lists no task that trains (it has no chief, no worker and no evaluator). List the "
                      "workers' addresses under 'worker'.");
  accept({{TaskType::evaluator, {"a:2222"}}}, Task{TaskType::evaluator, 0});
}

TEST_CASE("synchronous training refuses clusters with gaps") {
  ClusterSpec dynamic;
  dynamic.add({TaskType::worker, 0}, "a:2222");
  dynamic.add({TaskType::worker, 3}, "d:2222");
  refuse_multi_worker(
      dynamic, worker_0,
      "TF_CONFIG does not list worker 1 (its workers go up to 3, with gaps). Workers that train synchronously need the "
      "addresses of all: list all workers, from 0 on (with Kubeflow, set enableDynamicWorker to false).");
}

TEST_CASE("parameter servers cannot train synchronously (spec A09)") {
  const ClusterSpec cluster{{TaskType::worker, {"a:2222", "b:2222"}}, {TaskType::parameter_server, {"c:2222"}}};
  refuse_multi_worker(
      cluster, Task{TaskType::parameter_server, 0},
      "This process is ps 0 of TF_CONFIG, which MultiWorker does not use (every worker holds its own copy "
      "of the variables). Do not start parameter servers for this strategy.");
  accept(cluster, worker_0);
}

TEST_CASE("a job with parameter servers needs servers, workers and addresses, and no evaluator (spec J01, J12)") {
  const auto refuse_servers = [](const ClusterSpec& cluster, const std::optional<Task>& task, const std::string& text) {
    CHECK_THROWS_WITH_AS(validate_parameter_servers(cluster, task, "TF_CONFIG"), text.c_str(), InvalidArgument);
  };
  constexpr Task chief{TaskType::chief, 0}, server{TaskType::parameter_server, 0};
  const ClusterSpec good{{TaskType::worker, {"a:2222"}}, {TaskType::parameter_server, {"b:2222"}}};
  for (const Task task : {chief, server, worker_0}) CHECK_NOTHROW(validate_parameter_servers(good, task, "TF_CONFIG"));
  ClusterSpec with_chief = good;
  with_chief.add(chief, "c:2222");
  for (const Task task : {chief, server, worker_0})
    CHECK_NOTHROW(validate_parameter_servers(with_chief, task, "TF_CONFIG"));

  refuse_servers({}, std::nullopt,
                 "TF_CONFIG lists no cluster (parameter servers and workers are separate processes). List their "
                 "addresses under 'ps' and 'worker'.");
  refuse_servers(
      {{TaskType::chief, {"a:1", "b:1"}}}, chief,
      "TF_CONFIG lists more than one chief (2 tasks; at most one is allowed). List the others under 'worker'.");
  refuse_servers(good, std::nullopt,
                 "TF_CONFIG does not specify the task of this process (it lists a cluster, but no task). Add a task "
                 "type and an index, such as {\"type\": \"worker\", \"index\": 0}.");
  refuse_servers(good, Task{TaskType::chief, 1},
                 "This process is chief 1, but TF_CONFIG lists no task of this type (the cluster lists 'worker', "
                 "'ps'). Add the type to the cluster, or correct the type of the task.");
  const std::string evaluator =
      "evaluator 0 of TF_CONFIG is in a cluster with parameter servers (an evaluator runs alone, outside the job, and "
      "no task of the job calls it). Remove it from the list, and start it with a cluster that lists only the "
      "evaluator.";
  refuse_servers(good, Task{TaskType::evaluator, 0}, evaluator);
  refuse_servers({{TaskType::evaluator, {"c:2222"}}}, Task{TaskType::evaluator, 0},
                 "This process is evaluator 0 of TF_CONFIG, which is not a task of a job with parameter servers (an "
                 "evaluator runs alone, outside the job, and evaluates its checkpoints). Check the task first: an "
                 "evaluator does not call dist::serve or use a ParameterServer, but evaluates under another strategy, "
                 "such as with nn::SidecarEvaluator under dist::Default.");
  ClusterSpec with_evaluator = good;
  with_evaluator.add({TaskType::evaluator, 0}, "c:2222");
  for (const Task task : {chief, server, worker_0}) refuse_servers(with_evaluator, task, evaluator);
  refuse_servers(workers({"a:2222"}), worker_0,
                 "TF_CONFIG lists no parameter server (no process would hold the variables). List at least one address "
                 "under 'ps'.");
  refuse_servers({{TaskType::parameter_server, {"b:2222"}}}, server,
                 "TF_CONFIG lists no worker (no process would train). List at least one address under 'worker'.");
  refuse_servers({{TaskType::worker, {""}}, {TaskType::parameter_server, {""}}}, server,
                 "worker 0 of TF_CONFIG has no address (the coordinator needs it to call this task). Write host:port "
                 "for each parameter server and each worker.");
}

TEST_CASE("tasks that MultiWorker does not use are noted") {
  CHECK(multi_worker_notes(workers({"a:1"}), "TF_CONFIG").empty());
  const ClusterSpec cluster{
      {TaskType::worker, {"a:1"}}, {TaskType::parameter_server, {"b:1", "c:1"}}, {TaskType::evaluator, {"d:1"}}};
  CHECK(
      multi_worker_notes(cluster, "TF_CONFIG") ==
      std::vector<std::string>{
          "TF_CONFIG lists 2 parameter servers, which MultiWorker does not use: every worker holds its own copy of the "
          "variables.",
          "TF_CONFIG lists an evaluator in the cluster; it runs alone and does not take part in training."});
}
