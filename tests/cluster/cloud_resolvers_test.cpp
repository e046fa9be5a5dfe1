#include <dist/cluster/cloud_resolvers.hpp>

#include <doctest/doctest.h>

#include <string>

#include <dist/cluster/cluster_resolver.hpp>
#include <dist/cluster/validate.hpp>

using dist::ClusterSpec;
using dist::Environment;
using dist::Task;
using dist::TaskType;
using dist::VertexResolver;

static_assert(dist::ClusterResolver<VertexResolver>);

namespace {

VertexResolver resolver(const std::string& spec) { return VertexResolver{Environment{{{"CLUSTER_SPEC", spec}}}}; }

}  // namespace

TEST_CASE("worker pools are roles by their position (spec M01)") {
  const VertexResolver vertex = resolver(
      R"({"cluster":{"workerpool0":["cmle-training-workerpool0-ab-0:2222"],)"
      R"("workerpool1":["cmle-training-workerpool1-ab-0:2222","cmle-training-workerpool1-ab-1:2222"],)"
      R"("workerpool2":["cmle-training-workerpool2-ab-0:2222"],"workerpool3":["cmle-training-workerpool3-ab-0:2222"]},)"
      R"("environment":"cloud","task":{"type":"workerpool1","index":1,"trial":""},"job":"{\"python_module\":\"\"}"})");
  const ClusterSpec cluster = vertex.cluster_spec();
  CHECK(cluster.job_tasks(TaskType::chief) == std::vector<std::string>{"cmle-training-workerpool0-ab-0:2222"});
  CHECK(cluster.num_tasks(TaskType::worker) == 2);
  CHECK(cluster.num_tasks(TaskType::parameter_server) == 1);
  CHECK(cluster.num_tasks(TaskType::evaluator) == 1);
  CHECK(vertex.task() == Task{TaskType::worker, 1});
  CHECK_NOTHROW(validate_cluster(cluster, vertex.task(), vertex.describe()));
}

TEST_CASE("without CLUSTER_SPEC the cluster is empty (spec M04)") {
  const VertexResolver none{Environment{Environment::Variables{}}};
  CHECK(none.cluster_spec().empty());
  CHECK_FALSE(none.task());
  CHECK_FALSE(none.num_accelerators());
}

TEST_CASE("unknown worker pools are refused") {
  for (const char* pool : {"workerpool4", "workerpool", "workerpool10", "workerpool/", "worker"}) {
    CAPTURE(pool);
    CHECK_THROWS_WITH_AS(resolver(std::string("{\"cluster\": {\"") + pool + "\": [\"a:1\"]}}").cluster_spec(),
                         (std::string("CLUSTER_SPEC has an unknown task type in 'cluster' ('") + pool +
                          "'; allowed are workerpool0 to workerpool3). Correct the name, in lower case.")
                             .c_str(),
                         dist::InvalidArgument);
  }
}
