#include <dist/context/run_here.hpp>

#include <doctest/doctest.h>

#include <optional>
#include <thread>

#include <dist/comm/memory/thread_all_reduce.hpp>
#include <dist/strategy/default.hpp>
#include <dist/strategy/mirrored.hpp>

#include "support/stderr_of.hpp"

using dist::detail::require_outside_other_strategies;
using dist::detail::run_here;

TEST_CASE("a thread is where the innermost guard says, and then where it was before") {
  const int first = 0, second = 0;
  CHECK(!run_here.is_replica_function());
  {
    const dist::detail::RunGuard run{{.strategy = &first}};
    CHECK(run_here.is_replica_function());
    CHECK_NOTHROW(require_outside_other_strategies(&first, nullptr, "run"));
    CHECK_THROWS_AS(require_outside_other_strategies(&second, nullptr, "run"), dist::WrongStrategy);
    CHECK_NOTHROW(require_outside_other_strategies(&second, &first, "run"));
    {
      const dist::detail::RunGuard merging{{.strategy = &first, .is_merging = true}};
      CHECK(!run_here.is_replica_function());
      CHECK_NOTHROW(require_outside_other_strategies(&second, nullptr, "run"));
    }
    CHECK(run_here.strategy == &first);
    CHECK(run_here.is_replica_function());
    std::thread{[] { CHECK(run_here.strategy == nullptr); }}.join();
  }
  CHECK(run_here.strategy == nullptr);
}

TEST_CASE("a replica context that was kept breaks a contract after its run") {
  using Mirrored = dist::Mirrored<dist::ThreadAllReduce>;
  const auto ending = testing::stderr_of([] {
    Mirrored strategy{1};
    auto counter = strategy.variable<int>({});
    std::optional<Mirrored::Context> kept;
    strategy.run([&](auto& replica) { kept = replica; });
    counter.assign(*kept, 1);
  });
  CHECK(ending.aborted);
  CHECK(ending.says("is_in_its_run()"));
  CHECK(!testing::stderr_of([] {
           dist::Default strategy;  // in whose replica functions nothing is different
           auto counter = strategy.variable<int>({});
           counter.assign(strategy.run([](auto& replica) { return replica; }), 1);
         }).aborted);
}
