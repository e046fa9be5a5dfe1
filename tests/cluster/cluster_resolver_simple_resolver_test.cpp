#include <dist/cluster/cluster_resolver.hpp>

#include <doctest/doctest.h>

using dist::ClusterSpec;
using dist::SimpleResolver;
using dist::Task;
using dist::TaskType;

static_assert(dist::ClusterResolver<SimpleResolver>);

TEST_CASE("a simple resolver returns the given values (spec M15)") {
  const ClusterSpec cluster{{TaskType::worker, {"a:1", "b:1"}}};
  const SimpleResolver resolver{cluster, Task{TaskType::worker, 1}, 2};
  CHECK(resolver.cluster_spec() == cluster);
  CHECK(resolver.task() == Task{TaskType::worker, 1});
  CHECK(resolver.num_accelerators() == 2);
  CHECK(resolver.describe() == "SimpleResolver");
}

TEST_CASE("a simple resolver without task and number of devices returns neither (spec M05, M15)") {
  const SimpleResolver resolver{ClusterSpec{}};
  CHECK(resolver.cluster_spec().empty());
  CHECK_FALSE(resolver.task());
  CHECK_FALSE(resolver.num_accelerators());
}
