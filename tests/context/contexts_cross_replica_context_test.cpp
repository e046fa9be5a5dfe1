#include <dist/context/contexts.hpp>

#include <doctest/doctest.h>

#include <dist/comm/memory/thread_all_reduce.hpp>
#include <dist/strategy/default.hpp>
#include <dist/strategy/mirrored.hpp>

#include <cstddef>
#include <type_traits>

using Mirrored = dist::Mirrored<dist::ThreadAllReduce>;

TEST_CASE("scope returns the context outside replica functions (spec B03)") {
  for (const std::size_t replicas : {std::size_t{1}, std::size_t{2}, std::size_t{3}, std::size_t{4}}) {
    Mirrored strategy(replicas);
    const auto context = strategy.scope();
    CHECK(&context.strategy() == &strategy);
    CHECK(context.num_replicas_in_sync() == replicas);
    for (std::size_t replica = 0; replica < replicas; ++replica)
      CHECK(context.queue(replica).transform_reduce(dist::sum, {0, 3}, [](std::size_t i) { return i; }) == 3);
  }
}

TEST_CASE("Default has the same context, with one replica (spec A21)") {
  dist::Default strategy;
  const auto context = strategy.scope();
  CHECK(&context.strategy() == &strategy);
  CHECK(context.num_replicas_in_sync() == 1);
}

TEST_CASE("copies of a context refer to the same strategy") {
  Mirrored strategy(2);
  const auto context = strategy.scope();
  const auto copy = context;
  CHECK(&copy.strategy() == &context.strategy());
  CHECK(copy.strategy().run([](auto& replica) { return replica.local_index(); })[1] == 1);
}

TEST_CASE("InCrossReplica holds only for contexts outside replica functions") {
  using Context = dist::CrossReplicaContext<Mirrored>;
  static_assert(dist::InCrossReplica<Context> && dist::InCrossReplica<const Context&>);
  static_assert(dist::InCrossReplica<dist::CrossReplicaContext<dist::Default>>);
  static_assert(!dist::InCrossReplica<Mirrored::Context> && !dist::InCrossReplica<Mirrored>);
  static_assert(!dist::InCrossReplica<Context*> && !dist::InCrossReplica<int>);
  CHECK(std::is_same_v<Context::Strategy, Mirrored>);
}
