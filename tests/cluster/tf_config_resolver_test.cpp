#include <dist/cluster/tf_config_resolver.hpp>

#include <doctest/doctest.h>

#include <cstdlib>
#include <string>

#include <dist/cluster/cluster_resolver.hpp>
#include <dist/cluster/validate.hpp>

using dist::ClusterSpec;
using dist::Environment;
using dist::InvalidArgument;
using dist::Task;
using dist::TaskType;
using dist::TfConfigResolver;

static_assert(dist::ClusterResolver<TfConfigResolver>);

namespace {

TfConfigResolver resolver(const std::string& config, dist::TaskOverride given = {}) {
  return TfConfigResolver{given, Environment{{{"TF_CONFIG", config}}}};
}
void check_valid(const TfConfigResolver& resolver) {
  CHECK_NOTHROW(validate_cluster(resolver.cluster_spec(), resolver.task(), resolver.describe()));
}

}  // namespace

TEST_CASE("without TF_CONFIG the cluster is empty (spec M01, M04, A08)") {
  for (const TfConfigResolver& none :
       {TfConfigResolver{{}, Environment{Environment::Variables{}}}, resolver(""), resolver("{}")}) {
    CHECK(none.cluster_spec().empty());
    CHECK_FALSE(none.task());
    CHECK_FALSE(none.num_accelerators());  // all available ones (spec M05, A10)
  }
}

TEST_CASE("TF_CONFIG is read at each call (spec M02)") {
  const TfConfigResolver process;
  ::setenv("TF_CONFIG", R"({"cluster": {"worker": ["a:1"]}, "task": {"type": "worker", "index": 0}})", 1);
  CHECK(process.cluster_spec().num_tasks(TaskType::worker) == 1);
  CHECK(process.task() == Task{TaskType::worker, 0});
  ::setenv("TF_CONFIG", R"({"cluster": {"worker": ["a:1", "b:1"]}, "task": {"type": "worker", "index": 1}})", 1);
  CHECK(process.cluster_spec().num_tasks(TaskType::worker) == 2);
  CHECK(process.task() == Task{TaskType::worker, 1});
  ::unsetenv("TF_CONFIG");
  CHECK(process.cluster_spec().empty());
}

TEST_CASE("a given type or index overrides the variable (spec M02)") {
  const std::string config = R"({"cluster": {"worker": ["a:1", "b:1"]}, "task": {"type": "worker", "index": 1}})";
  CHECK(resolver(config, {.index = 0}).task() == Task{TaskType::worker, 0});
  CHECK(resolver(config, {.type = TaskType::evaluator, .index = 0}).task() == Task{TaskType::evaluator, 0});
  CHECK(resolver(R"({"cluster": {"worker": ["a:1", "b:1"]}})", {.type = TaskType::worker, .index = 1}).task() ==
        Task{TaskType::worker, 1});
}

TEST_CASE("a task without type or index is refused (spec M25)") {
  CHECK_THROWS_WITH_AS(resolver(R"({"task": {"type": "worker"}})").task(),
                       "TF_CONFIG does not specify the task of this process (task.type is 'worker', but task.index is "
                       "missing). Write both, such as {\"type\": \"worker\", \"index\": 0}.",
                       InvalidArgument);
  CHECK_THROWS_WITH_AS(resolver(R"({"task": {"index": 2}})").task(),
                       "TF_CONFIG does not specify the task of this process (task.index is 2, but task.type is "
                       "missing). Write both, such as {\"type\": \"worker\", \"index\": 0}.",
                       InvalidArgument);
}

TEST_CASE("variables of Kubeflow's operator are accepted (spec M01)") {
  const TfConfigResolver worker = resolver(
      R"({"cluster":{"chief":["mnist-chief-0.kubeflow.svc:2222"],"worker":["mnist-worker-0.kubeflow.svc:2222",)"
      R"("mnist-worker-1.kubeflow.svc:2222"]},"task":{"type":"worker","index":1},"environment":"cloud"})");
  CHECK(worker.task() == Task{TaskType::worker, 1});
  CHECK(worker.cluster_spec().task_address({TaskType::worker, 1}) == "mnist-worker-1.kubeflow.svc:2222");
  check_valid(worker);

  const TfConfigResolver evaluator =
      resolver(R"({"cluster":{"worker":["mnist-worker-0.kubeflow.svc:2222"]},"task":{"type":"evaluator","index":0},)"
               R"("environment":"cloud"})");
  CHECK(evaluator.task() == Task{TaskType::evaluator, 0});
  check_valid(evaluator);

  const TfConfigResolver dynamic = resolver(
      R"({"sparseCluster":{"ps":["mnist-ps-0.kubeflow.svc:2222"],"worker":{"3":"mnist-worker-3.kubeflow.svc:2222"}},)"
      R"("task":{"type":"worker","index":3}})");
  CHECK(dynamic.cluster_spec().task_indices(TaskType::worker) == std::vector<std::size_t>{3});
  check_valid(dynamic);
}

TEST_CASE("variables of Ray Train are accepted (spec M01)") {
  const TfConfigResolver ray = resolver(
      R"({"cluster": {"worker": ["10.0.0.4:37415", "10.0.0.5:43701"]}, "task": {"type": "worker", "index": 1}})");
  CHECK(ray.task() == Task{TaskType::worker, 1});
  check_valid(ray);
}

TEST_CASE("variables of SageMaker's parameter server mode are accepted (spec M01)") {
  const TfConfigResolver sage_maker = resolver(
      R"({"cluster": {"master": ["algo-1:2222"], "ps": ["algo-1:2223", "algo-2:2223"], "worker": ["algo-2:2222"]},)"
      R"( "environment": "cloud", "task": {"index": 0, "type": "master"}})");
  CHECK(sage_maker.task() == Task{TaskType::chief, 0});
  check_valid(sage_maker);
}
