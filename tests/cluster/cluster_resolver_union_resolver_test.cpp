#include <dist/cluster/cluster_resolver.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <string>
#include <vector>

#include <dist/core/error.hpp>

using dist::ClusterSpec;
using dist::SimpleResolver;
using dist::Task;
using dist::TaskType;
using dist::UnionResolver;

namespace {

// An empty union and types other than resolvers do not compile (spec M16).
template <class... R>
concept Unitable = requires {
  typename UnionResolver<R...>;
};
static_assert(Unitable<SimpleResolver> && Unitable<SimpleResolver, SimpleResolver>);
static_assert(!Unitable<> && !Unitable<int> && !Unitable<SimpleResolver, int>);
static_assert(dist::ClusterResolver<UnionResolver<SimpleResolver>>);

ClusterSpec worker_at(std::size_t index, const std::string& address) {
  ClusterSpec cluster;
  cluster.add({TaskType::worker, index}, address);
  return cluster;
}

}  // namespace

TEST_CASE("tasks of a type are concatenated (spec M16)") {
  const UnionResolver both{SimpleResolver{{{TaskType::worker, {"a:1", "b:1"}}, {TaskType::parameter_server, {"p:1"}}}},
                           SimpleResolver{{{TaskType::worker, {"c:1"}}, {TaskType::chief, {"d:1"}}}}};
  CHECK(both.cluster_spec() == ClusterSpec{{TaskType::chief, {"d:1"}},
                                           {TaskType::worker, {"a:1", "b:1", "c:1"}},
                                           {TaskType::parameter_server, {"p:1"}}});
}

TEST_CASE("if a cluster has gaps, all keep their indices (spec M16)") {
  const UnionResolver both{SimpleResolver{worker_at(2, "c:1")}, SimpleResolver{{{TaskType::worker, {"a:1", "b:1"}}}}};
  CHECK(both.cluster_spec() == ClusterSpec{{TaskType::worker, {"a:1", "b:1", "c:1"}}});

  const UnionResolver clash{SimpleResolver{worker_at(1, "c:1")}, SimpleResolver{{{TaskType::worker, {"a:1", "b:1"}}}}};
  CHECK_THROWS_WITH_AS(clash.cluster_spec(),
                       "The cluster lists worker 1 twice (at 'c:1' and at 'b:1'). Give every task its own index.",
                       dist::InvalidArgument);
}

TEST_CASE("the first resolver supplies the task of this process (spec M16)") {
  const UnionResolver both{SimpleResolver{{{TaskType::worker, {"a:1"}}}, Task{TaskType::worker, 0}, 4},
                           SimpleResolver{{{TaskType::worker, {"b:1"}}}, Task{TaskType::chief, 0}, 2}};
  CHECK(both.task() == Task{TaskType::worker, 0});
  CHECK(both.num_accelerators() == 4);
  CHECK(both.describe() == "SimpleResolver and SimpleResolver");
}
