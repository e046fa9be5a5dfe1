#include <dist/strategy/compile.hpp>

#include <doctest/doctest.h>

#include <cstddef>

#include <dist/comm/memory/thread_all_reduce.hpp>
#include <dist/device/cpu.hpp>
#include <dist/strategy/default.hpp>
#include <dist/strategy/mirrored.hpp>

using dist::PerReplica;
using Strategy = dist::Mirrored<dist::ThreadAllReduce>;

static_assert(!dist::CompilesSteps<dist::Cpu>);

TEST_CASE("on devices that do not compile steps, a call of a compiled step is a run") {
  Strategy strategy{2};
  std::size_t calls[2] = {};
  auto step = strategy.compile([&](auto& replica, int number) {
    ++calls[replica.local_index()];
    return replica.all_reduce(dist::sum, number);
  });
  CHECK(step(PerReplica<int>::of(3, 4))[1] == 7);
  CHECK(step(5)[0] == 10);
  CHECK(calls[1] == 2);

  dist::Default alone;
  CHECK(alone.compile([](auto&, int number) { return number; })(5) == 5);
}

TEST_CASE("compile is refused in a replica function") {
  Strategy strategy{2};
  CHECK_THROWS_AS(strategy.run([&](auto&) { static_cast<void>(strategy.compile([](auto&) {})); }), dist::ReplicaError);
}
