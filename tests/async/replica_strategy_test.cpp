#include <dist/async/replica_strategy.hpp>

#include <doctest/doctest.h>

#include <stdexcept>
#include <vector>

#include <dist/core/reduce_op.hpp>

#include "async/served_job.hpp"

using dist::Local;
using dist_test::ServedJob;

TEST_CASE("a step sends what it pushes when it ends, and nothing if it throws") {
  ServedJob<Local> job(1, 1);
  auto sums = job.strategy().variable<double>({2}, 0.0);
  dist::ReplicaStrategy<Local> strategy;
  const auto add = [&](auto& replica, double by) {
    CHECK(replica.num_replicas_in_sync() == 1);
    replica.strategy().pushes().add(sums, dist::sum, std::vector<double>{by, 2 * by});
    CHECK(sums.read(job.scope())[0] == 0);
  };
  CHECK_THROWS_AS(strategy.step(job.scope(),
                                [&](auto& replica) {
                                  add(replica, 100);
                                  throw std::runtime_error("a step");
                                }),
                  std::runtime_error);
  CHECK(strategy.step(job.scope(), [&](auto& replica) {
    add(replica, 1);
    return 7;
  }) == 7);
  CHECK(sums.read(job.scope())[0] == 1);
  CHECK(sums.read(job.scope())[1] == 2);
}

TEST_CASE("nothing is pushed outside a step") {
  dist::ReplicaStrategy<Local> strategy;
  CHECK_THROWS_WITH_AS((void)strategy.pushes(),
                       "A replica's gradients or counts were to be pushed outside a step (the connections to the "
                       "parameter servers are those of the function that runs). Call it inside the run of the worker's "
                       "network.",
                       dist::InvalidArgument);
}
