#include <dist/strategy/make_variable.hpp>

#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <dist/comm/memory/thread_all_reduce.hpp>
#include <dist/strategy/default.hpp>
#include <dist/strategy/mirrored.hpp>

TEST_CASE("variables are created from a strategy or a context, with policies in any order (spec A16, B15)") {
  dist::Mirrored<dist::ThreadAllReduce> strategy{2};
  const auto outside = dist::variable<float, dist::Sum, dist::OnRead>(strategy, {2}, std::vector<float>{1, 2}, "total");
  CHECK(outside.name() == "total");
  CHECK(outside.read(strategy.scope())[1] == 4.0f);
  const auto merged = strategy.run([&](auto& replica) {
    return replica.merge_call([&](auto& scope) {
      return std::make_shared<dist::DistributedVariable<float, dist::OnRead, dist::Sum, dist::Cpu>>(
          dist::variable<float, dist::OnRead, dist::Sum>(scope.strategy(), {2}, 3.0f));
    });
  });
  CHECK(merged[0]->read(strategy.scope())[0] == 6.0f);
  const auto inside = strategy.run(
      [&](auto& replica) { return dist::variable<float, dist::OnRead>(replica, {}, 7.0f)->component(replica)[0]; });
  CHECK(inside[1] == 7.0f);
}

TEST_CASE("an initial value that does not fit is refused, naming the variable") {
  dist::Default strategy;
  const dist::Tensor<float> three{{3}};
  CHECK_THROWS_WITH_AS(static_cast<void>(dist::variable<float>(strategy, {2}, three.view(), "weights")),
                       doctest::Contains("does not fit variable 'weights'"), dist::ShapeMismatch);
}

TEST_CASE("shapes and names of a variable are compared between replica threads") {
  using dist::PerReplica;
  const PerReplica<std::string> names(2, [](std::size_t id) { return id == 0 ? "a" : "b"; });
  const PerReplica<dist::Shape> shapes(2, [](std::size_t) { return dist::Shape{2}; });
  CHECK_THROWS_AS(dist::detail::require_same_on_all_replicas(shapes, names), dist::CollectiveMismatch);
  const PerReplica<std::string> equal(2, [](std::size_t) { return "a"; });
  CHECK_NOTHROW(dist::detail::require_same_on_all_replicas(shapes, equal));
}
