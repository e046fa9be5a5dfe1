#include <dist/cluster/cloud_resolvers.hpp>

#include <doctest/doctest.h>

#include <cstdlib>
#include <string>

#include <dist/cluster/cluster_resolver.hpp>
#include <dist/cluster/validate.hpp>

using dist::ClusterSpec;
using dist::Environment;
using dist::InvalidArgument;
using dist::SageMakerResolver;
using dist::Task;
using dist::TaskType;

static_assert(dist::ClusterResolver<SageMakerResolver>);

namespace {

SageMakerResolver resolver(const std::string& hosts, const std::string& current) {
  return SageMakerResolver{2223, Environment{{{"SM_HOSTS", hosts}, {"SM_CURRENT_HOST", current}}}};
}

}  // namespace

TEST_CASE("hosts are workers, sorted by name (spec M21)") {
  const SageMakerResolver sage_maker = resolver(R"(["algo-2","algo-1","algo-3"])", "algo-2");
  CHECK(sage_maker.cluster_spec() == ClusterSpec{{TaskType::worker, {"algo-1:2223", "algo-2:2223", "algo-3:2223"}}});
  CHECK(sage_maker.task() == Task{TaskType::worker, 1});
  CHECK_FALSE(sage_maker.num_accelerators());
  CHECK_NOTHROW(validate_multi_worker(sage_maker.cluster_spec(), sage_maker.task(), sage_maker.describe()));
}

TEST_CASE("by default the port is 2223 and variables are read from the process (spec M21)") {
  setenv("SM_HOSTS", R"(["algo-1"])", 1);
  setenv("SM_CURRENT_HOST", "algo-1", 1);
  const SageMakerResolver sage_maker;
  CHECK(sage_maker.cluster_spec() == ClusterSpec{{TaskType::worker, {"algo-1:2223"}}});
  CHECK(sage_maker.task() == Task{TaskType::worker, 0});
  CHECK(SageMakerResolver{4000}.cluster_spec() == ClusterSpec{{TaskType::worker, {"algo-1:4000"}}});
  unsetenv("SM_HOSTS");
  unsetenv("SM_CURRENT_HOST");
}

TEST_CASE("missing and malformed variables are reported (spec M21)") {
  CHECK_THROWS_WITH_AS((SageMakerResolver{2223, Environment{Environment::Variables{}}}.cluster_spec()),
                       "The environment variable SM_HOSTS is not set (this is not a SageMaker environment). Start as a "
                       "SageMaker training job, or use another resolver.",
                       InvalidArgument);
  CHECK_THROWS_WITH_AS(
      resolver(R"(["algo-1"])", "algo-9").task(),
      "SM_CURRENT_HOST is not one of SM_HOSTS (it is 'algo-9'). Pass both variables on as SageMaker set "
      "them.",
      InvalidArgument);
  for (const char* hosts : {"[]", "{}", "\"algo-1\"", "[\"algo-1\", 2]", "3"}) {
    CAPTURE(hosts);
    CHECK_THROWS_WITH_AS(resolver(hosts, "algo-1").cluster_spec(), doctest::Contains("SM_HOSTS is not a list of host"),
                         InvalidArgument);
  }
  CHECK_THROWS_WITH_AS(resolver("algo-1", "algo-1").cluster_spec(),
                       doctest::Contains("SM_HOSTS cannot be parsed as JSON"), InvalidArgument);
}
