// ranks: 1 2 4
#include <dist/context/meet.hpp>

#include <stdexcept>

#include <dist/comm/ring_all_reduce.hpp>
#include <dist/context/together.hpp>
#include <dist/core/error.hpp>
#include <dist/multi_worker.hpp>
#include <dist/strategy/default.hpp>

#include <doctest/doctest.h>

using dist::detail::meet;
using dist::detail::together;

TEST_CASE("one process meets itself") {
  dist::Default strategy;
  meet(strategy.workers());
}

TEST_CASE("processes meet, or know which one does not come") {
  dist::MultiWorker<dist::RingAllReduce> strategy{1};
  together(strategy, [&] { meet(strategy.workers()); });
  if (strategy.num_replicas_in_sync() == 1) return;
  if (strategy.first_local_replica() == 0) {
    CHECK_THROWS_AS(together(strategy, [&] { throw std::runtime_error("stays away"); }), std::runtime_error);
  } else {
    CHECK_THROWS_WITH_AS(together(strategy, [&] { meet(strategy.workers()); }), doctest::Contains("stays away"),
                         dist::PeerError);
  }
}
