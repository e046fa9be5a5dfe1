#include <dist/async/step_messages.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <span>
#include <vector>

#include <dist/core/reduce_op.hpp>

#include "async/served_job.hpp"

using dist_test::Counted;
using dist_test::ServedJob;

TEST_CASE("each server gets one message of a step, whatever the number of its shards") {
  ServedJob<Counted> job(2, 1, {.partitioner = dist::FixedShards{2}});
  auto& clients = job.strategy().clients();
  std::vector<dist::ServerVariable<double, Counted>> variables;
  for (int i = 0; i < 3; ++i) variables.push_back(job.strategy().variable<double>({4}, 10.0 * i));
  Counted::take("store.pull");
  Counted::take("store.push");

  dist::StepPush<Counted> push{clients};
  const std::vector<double> lent{1, 2};
  for (const auto& variable : variables) {
    push.add(variable.shards()[0], dist::sum, std::span<const double>{lent});
    push.add(variable, dist::sum, std::vector<double>{0, 0, 3, 4});
  }
  push.start();
  CHECK(Counted::take("store.push") == 2);
  CHECK(Counted::take("store.push reply") == 0);
  push.send();
  CHECK(Counted::take("store.push reply") == 2);
  CHECK(Counted::take("store.push") == 0);

  dist::StepPull<Counted> pull{clients};
  std::vector<double> values(12);
  std::vector<std::uint64_t> versions(6);
  for (std::size_t i = 0; i < 6; ++i)
    pull.add(variables[i / 2].shards()[i % 2], std::span{values}.subspan(2 * i, 2), versions[i]);
  pull.send();
  pull.wait();
  CHECK(Counted::take("store.pull") == 2);
  CHECK(values == std::vector<double>{1, 2, 3, 4, 11, 12, 13, 14, 21, 22, 23, 24});
  CHECK(versions == std::vector<std::uint64_t>{2, 1, 2, 1, 2, 1});

  push.add(variables[0].shards()[1], dist::sum, 10.0);
  push.send();
  values.assign(12, 0);
  for (std::size_t i = 0; i < 6; ++i)
    pull.add(variables[i / 2].shards()[i % 2], std::span{values}.subspan(2 * i, 2), versions[i]);
  pull.send();
  pull.wait();
  CHECK(values == std::vector<double>{0, 0, 13, 14, 0, 0, 0, 0, 0, 0, 0, 0});
  CHECK(versions == std::vector<std::uint64_t>{2, 2, 2, 1, 2, 1});
}

TEST_CASE("the first error is thrown once all servers have answered, and nothing is sent again") {
  ServedJob<Counted> job(2, 1);
  auto& clients = job.strategy().clients();
  auto first = job.strategy().variable<double>({1}, 0.0);
  auto second = job.strategy().variable<double>({1}, 0.0);
  dist::StepPush<Counted> push{clients};
  const std::vector<double> one_too_many{1, 2};
  push.add(first.shards()[0], dist::sum, std::span{one_too_many});
  push.add(second, dist::sum, std::vector<double>{3});
  CHECK_THROWS_AS(push.send(), dist::StoreError);
  CHECK(first.read(job.scope())[0] == 0);
  CHECK(second.read(job.scope())[0] == 3);
  push.send();
  CHECK(second.read(job.scope())[0] == 3);
}
