// ranks: 1 2 4
#include <dist/context/run_collectively.hpp>

#include <cstddef>

#include <dist/comm/ring_all_reduce.hpp>
#include <dist/multi_worker.hpp>
#include <dist/strategy/default.hpp>

#include <doctest/doctest.h>

using dist::detail::any_process;

TEST_CASE("any_process of one process returns its own value") {
  const dist::Default strategy;
  CHECK(any_process(strategy, true));
  CHECK_FALSE(any_process(strategy, false));
}

TEST_CASE("any_process returns the same value in all processes") {
  const dist::MultiWorker<dist::RingAllReduce> strategy{1};
  CHECK_FALSE(any_process(strategy, false));
  CHECK(any_process(strategy, true));
  for (std::size_t process = 0; process < strategy.num_replicas_in_sync(); ++process)
    CHECK(any_process(strategy, strategy.first_local_replica() == process));
}
