#include <dist/context/contexts.hpp>

#include <doctest/doctest.h>

#include <dist/comm/memory/thread_all_reduce.hpp>
#include <dist/strategy/mirrored.hpp>

#include <cstddef>
#include <type_traits>

using Mirrored = dist::Mirrored<dist::ThreadAllReduce>;

TEST_CASE("an update context has the number of the updated copy (spec B06)") {
  Mirrored strategy(3);
  auto variable = strategy.variable<float>({}, 0.0f);
  std::size_t next = 0;
  strategy.update(variable, [&](auto& context) {
    CHECK(&context.strategy() == &strategy);
    CHECK(context.num_replicas_in_sync() == 3);
    CHECK(context.local_index() == next++);
    static_assert(std::is_same_v<decltype(context.queue()), dist::Cpu::Queue>);
  });
  CHECK(next == 3);
}

TEST_CASE("InUpdate holds for update contexts only") {
  static_assert(dist::InUpdate<dist::UpdateContext<Mirrored>> && dist::InUpdate<const dist::UpdateContext<Mirrored>&>);
  static_assert(!dist::InUpdate<Mirrored::Context> && !dist::InUpdate<dist::CrossReplicaContext<Mirrored>>);
  static_assert(!dist::InUpdate<int> && !dist::InUpdate<Mirrored>);
  CHECK(dist::InUpdate<dist::UpdateContext<Mirrored>>);
}
