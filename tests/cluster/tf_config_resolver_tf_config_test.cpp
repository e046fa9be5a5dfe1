#include <dist/cluster/tf_config_resolver.hpp>

#include <doctest/doctest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include <support/stderr_of.hpp>

using dist::ClusterSpec;
using dist::InvalidArgument;
using dist::parse_tf_config;
using dist::Task;
using dist::TaskType;
using dist::TfConfig;

namespace {

const ClusterSpec chief_and_workers{{TaskType::chief, {"a:2222"}}, {TaskType::worker, {"b:2222", "c:2222"}}};

void refuse(const std::string& written, const std::string& message) {
  CAPTURE(written);
  CHECK_THROWS_WITH_AS(parse_tf_config(written), message.c_str(), InvalidArgument);
}

}  // namespace

TEST_CASE("cluster and task are parsed (spec M01)") {
  const TfConfig config = parse_tf_config(
      R"({"cluster": {"chief": ["a:2222"], "worker": ["b:2222", "c:2222"]}, "task": {"type": "worker", "index": 1},
          "rpc_layer": "grpc", "run_master": "local", "environment": "cloud", "job": {"anything": [1]}})");
  CHECK(config.cluster == chief_and_workers);
  CHECK(config.type == TaskType::worker);
  CHECK(config.index == 1);
}

TEST_CASE("a job may be a map from index to address (spec M01)") {
  const TfConfig config = parse_tf_config(
      R"({"cluster": {"chief": {"0": "a:2222"}, "worker": {"1": "c:2222", "0": "b:2222"}}, "task": {}})");
  CHECK(config.cluster == chief_and_workers);
  CHECK(parse_tf_config(R"({"cluster": {"worker": {"4": "e:1"}}})").cluster.task_indices(TaskType::worker) ==
        std::vector<std::size_t>{4});
}

TEST_CASE("the cluster may be named sparseCluster, and the chief master (spec M01)") {
  const char* const sparse =
      R"({"sparseCluster": {"worker": {"1": "job-worker-1.ns.svc:2222"}, "ps": ["job-ps-0.ns.svc:2222"]},
          "task": {"type": "worker", "index": 1}})";
  CHECK(parse_tf_config(sparse).cluster.task_address({TaskType::worker, 1}) == "job-worker-1.ns.svc:2222");
  CHECK(parse_tf_config(sparse).cluster.num_tasks(TaskType::parameter_server) == 1);

  const TfConfig master = parse_tf_config(
      R"({"cluster": {"master": ["a:2222"], "worker": ["b:2222", "c:2222"]}, "task": {"type": "master", "index": 0}})");
  CHECK(master.cluster == chief_and_workers);
  CHECK(master.type == TaskType::chief);
}

TEST_CASE("a sparseCluster without tasks, as Kubeflow passes to a chief, causes one warning") {
  const auto said = testing::stderr_of([] {
    for (int time = 0; time < 2; ++time)
      if (!parse_tf_config(R"({"sparseCluster": {"worker": {}, "ps": []}, "task": {"type": "chief", "index": 0}})")
               .cluster.empty())
        std::abort();
  });
  CHECK_FALSE(said.aborted);
  CHECK(said.stderr_text ==
        "dist: TF_CONFIG has a sparseCluster without tasks, so this process works alone. Kubeflow writes that for the "
        "chief of a job with enableDynamicWorker: set it to false. DIST_WARNINGS=0 silences this.\n");
  CHECK(testing::stderr_of([] { static_cast<void>(parse_tf_config(R"({"cluster": {}})")); }).stderr_text.empty());
}

TEST_CASE("missing parts are empty (spec M02, M04)") {
  for (const char* written :
       {"{}", R"({"cluster": {}})", R"({"cluster": null, "task": null})", R"({"cluster": {"worker": []}})",
        R"({"cluster": {"worker": null}})", R"({"task": {}})"}) {
    CAPTURE(written);
    const TfConfig config = parse_tf_config(written);
    CHECK(config.cluster.empty());
    CHECK_FALSE(config.type);
    CHECK_FALSE(config.index);
  }
}

TEST_CASE("an index may be a string of digits (spec M02)") {
  CHECK(parse_tf_config(R"({"task": {"type": "worker", "index": "3"}})").index == 3);
  refuse(
      R"({"task": {"type": "worker", "index": "two"}})",
      "TF_CONFIG has a task index that cannot be used in 'task.index' ('two' is not a whole number from 0 to 1000000). "
      "Number the tasks of a type from 0.");
  for (const char* index : {"-1", "1.5", "true", "[0]", "1000001", "\"\"", "1e3"}) {
    CAPTURE(index);
    CHECK_THROWS_WITH_AS(parse_tf_config(std::string(R"({"task": {"index": )") + index + "}}"),
                         doctest::Contains("TF_CONFIG has a task index that cannot be used in 'task.index' ("),
                         InvalidArgument);
  }
}

TEST_CASE("unknown task types are refused (spec M08)") {
  refuse(R"({"cluster": {"workers": ["a:1"]}})",
         "TF_CONFIG has an unknown task type in 'cluster' ('workers'; allowed are chief, worker, ps and evaluator). "
         "Correct the name, in lower case.");
  refuse(R"({"task": {"type": "Worker", "index": 0}})",
         "TF_CONFIG has an unknown task type in 'task.type' ('Worker'; allowed are chief, worker, ps and evaluator). "
         "Correct the name, in lower case.");
  refuse(R"({"cluster": {"chief": ["a:1"], "master": ["b:1"]}})",
         "TF_CONFIG lists the chief twice ('chief' and 'master' are two names of one job). Keep one of them.");
}

TEST_CASE("an error for hostile bytes is safe for a terminal, and short") {
  const std::string megabyte(1'000'000, 'a');
  const auto refusal = [](const std::string& config) -> std::string {
    try {
      static_cast<void>(parse_tf_config(config));
    } catch (const InvalidArgument& error) {
      return error.what();
    }
    return "nothing was thrown";
  };
  CHECK(refusal("{\"cluster\": {\"work\x7f"
                "er\": []}}")
            .find("('work\\x7fer'; allowed are") != std::string::npos);
  for (const std::string& config :
       {R"({"task": {"type": "worker", "index": ")" + megabyte + R"("}})",
        R"({"task": {"type": ")" + megabyte + R"("}})", R"({"cluster": {"worker": {")" + megabyte + R"(": "a:1"}}})",
        R"({"cluster": {"worker": {")" + megabyte + R"(": 1}}})", R"({"cluster": {")" + megabyte + R"(": ["a:1"]}})"}) {
    const std::string said = refusal(config);
    CAPTURE(said);
    CHECK(said.find("aaa... (1000000 bytes)") != std::string::npos);
    CHECK(said.size() < 400);
  }
}

TEST_CASE("JSON of another shape is refused with the reason (spec M01)") {
  refuse("[]", "TF_CONFIG is not an object (it is an array). Write {\"cluster\": {...}, \"task\": {...}}.");
  refuse("null", "TF_CONFIG is not an object (it is null). Write {\"cluster\": {...}, \"task\": {...}}.");
  refuse(R"({"cluster": ["a:1"]})",
         "TF_CONFIG has a 'cluster' that is not an object (it is an array). "
         "Write {\"worker\": [\"host0:2222\", \"host1:2222\"]}.");
  refuse(R"({"cluster": {"worker": "a:1"}})",
         "TF_CONFIG has no list of tasks in 'cluster.worker' (it is a string). Write \"worker\": [\"host0:2222\"].");
  refuse(R"({"cluster": {"worker": ["a:1", 2222]}})",
         "TF_CONFIG has no address for task 1 of 'worker' (it is a number). Write a string such as \"host0:2222\".");
  refuse(R"({"cluster": {"worker": {"0": ""}}})",
         "TF_CONFIG has no address for task 0 of 'worker' (it is an empty string). Write a string such as "
         "\"host0:2222\".");
  refuse(R"({"cluster": {"worker": {"first": "a:1"}}})",
         "TF_CONFIG has a task index that cannot be used in 'cluster.worker' ('first' is not a whole number from 0 to "
         "1000000). Number the tasks of a type from 0.");
  refuse(R"({"cluster": {"worker": {"0": "a:1", "00": "b:1"}}})",
         "The cluster lists worker 0 twice (at 'a:1' and at 'b:1'). Give every task its own index.");
  refuse(R"({"task": "worker"})",
         "TF_CONFIG has a 'task' that is not an object (it is a string). Write {\"type\": \"worker\", \"index\": 0}.");
  refuse(R"({"task": {"type": 1}})",
         "TF_CONFIG has a task type that is not a string (task.type is a number). Write one of chief, worker, ps and "
         "evaluator.");
  CHECK_THROWS_WITH_AS(parse_tf_config("{", "CLUSTER_SPEC"), doctest::Contains("CLUSTER_SPEC cannot be parsed as JSON"),
                       InvalidArgument);
}
