// ranks: 1 2 4
#include <dist/context/run_collectively.hpp>

#include <stdexcept>

#include <dist/comm/ring_all_reduce.hpp>
#include <dist/core/error.hpp>
#include <dist/multi_worker.hpp>
#include <dist/strategy/default.hpp>

#include <doctest/doctest.h>

using dist::detail::run_collectively;

TEST_CASE("a barrier of one process returns") {
  dist::Default strategy;
  strategy.workers().communicator().barrier();
}

TEST_CASE("a barrier of processes returns in all of them, or names the missing one") {
  dist::MultiWorker<dist::RingAllReduce> strategy{1};
  run_collectively(strategy, [&] { strategy.workers().communicator().barrier(); });
  if (strategy.num_replicas_in_sync() == 1) return;
  if (strategy.first_local_replica() == 0) {
    CHECK_THROWS_AS(run_collectively(strategy, [&] { throw std::runtime_error("stays away"); }), std::runtime_error);
  } else {
    CHECK_THROWS_WITH_AS(run_collectively(strategy, [&] { strategy.workers().communicator().barrier(); }),
                         doctest::Contains("stays away"), dist::PeerError);
  }
}
