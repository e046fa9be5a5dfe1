#include <dist/server/variable_cache.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include <dist/server/server_store.hpp>
#include <dist/strategy/parameter_server.hpp>
#include <dist/variable/partitioner.hpp>

#include "coordinator/served_job.hpp"
#include "support/what_throws.hpp"

using dist_test::Counted;
using dist_test::ServedJob;

namespace {

using ShardServer = dist::ServerStore<Counted>;

/// Three tensors of 16 floats, with a gap after each.
const dist::VariableTensor layout[] = {{"", 0, "a", {16}, 0}, {"", 0, "b", {16}, 32}, {"", 0, "c", {16}, 64}};

void forget_calls() {
  for (const char* what : {"store.pull", "store.pull reply", "store.push", "store.push reply"}) Counted::take(what);
}

}  // namespace

TEST_CASE("tensors are pulled in buckets, the first ones first, and awaited when they are used") {
  ServedJob<Counted> job(1, 1, {.bucket_bytes = 64});
  auto& strategy = job.strategy();
  const auto variable = strategy.variable<float, dist::OnWrite>({96}, 1.0F, "v", dist::Trainable::yes, layout);
  const auto number = strategy.variable<float, dist::OnWrite>({}, 2.0F, "n");
  // A bucket is closed at more than 64 bytes: two tensors, and one.
  CHECK(ShardServer::on_servers(variable)->buckets().size() == 2);
  auto& cache = strategy.variable_cache();
  const auto wanted = cache.since(0);
  CHECK(wanted.size() == 2);
  forget_calls();
  cache.step(wanted, [&] {
    CHECK(Counted::take("store.pull") == 2);
    CHECK(Counted::take("store.pull reply") == 0);
    cache.await(*wanted[1], {0, 1});  // together with the first tensor
    CHECK(Counted::take("store.pull reply") == 1);
    cache.await(*wanted[0], {0, 16});
    CHECK(Counted::take("store.pull reply") == 0);
    cache.await(*wanted[0], {64, 80});
    CHECK(Counted::take("store.pull reply") == 1);
  });
  CHECK(Counted::take("store.push") == 0);
  // Unchanged elements are not sent again, but the request is.
  cache.step(wanted, [&] { cache.await(*wanted[0], {0, 96}); });
  CHECK(Counted::take("store.pull") == 2);
}

TEST_CASE("send_pushes sends updates, and the servers have applied them when the step ends") {
  ServedJob<Counted> job(2, 1, {.bucket_bytes = 1});
  auto& strategy = job.strategy();
  const auto variable = strategy.variable<float, dist::OnWrite>({96}, 1.0F, "v", dist::Trainable::yes, layout);
  auto& cached = *ShardServer::on_servers(variable);
  REQUIRE(cached.buckets().size() == 3);
  CHECK(cached.first_of_bucket(0) == 64);
  CHECK(cached.first_of_bucket(2) == 0);
  auto& cache = strategy.variable_cache();
  std::vector<float> gradients(96, 2);
  const auto functor = [](std::size_t tensor) {
    CHECK(tensor < 3);
    return dist::Sum{};
  };
  forget_calls();
  cache.step({}, [&] {
    cache.push_updates(cached, {0, 1}, std::span<const float>{gradients}, functor, 0);
    CHECK(Counted::take("store.push") == 0);
    cache.send_pushes();
    CHECK(Counted::take("store.push") == 1);
    CHECK(Counted::take("store.push reply") == 0);
    cache.wait_for_pushes();
    CHECK(Counted::take("store.push reply") == 1);
    gradients.assign(96, 3);
    cache.push_updates(cached, {1, 3}, std::span<const float>{gradients}, functor, 0);
  });
  CHECK(Counted::take("store.push") == 2);
  CHECK(Counted::take("store.push reply") == 2);
  const auto values = variable.read(job.scope());
  CHECK(values[0] == 4);
  CHECK(values[64] == 3);
}

TEST_CASE("an error of a server ends the step, and nothing is sent again") {
  ServedJob<Counted> job(2, 1);
  auto& strategy = job.strategy();
  const auto first = strategy.variable<float, dist::OnWrite>({2}, 0.0F);
  const auto second = strategy.variable<float, dist::OnWrite>({2}, 0.0F);
  auto& cache = strategy.variable_cache();
  const std::vector<float> gradients(2, 5);
  const auto push = [&](const auto& variable, std::uint32_t first_slot, const auto& functor) {
    cache.push_updates(
        *ShardServer::on_servers(variable), {0, 1}, std::span<const float>{gradients},
        [&](std::size_t) { return functor; }, first_slot);
  };
  CHECK_THROWS_AS(cache.step({},
                             [&] {
                               push(first, 0, dist::server::AssignSlot{});  // the slot does not exist
                               push(second, 0, dist::Sum{});
                             }),
                  dist::StoreError);
  CHECK(second.read(job.scope())[0] == 5);
  cache.step({}, [&] { push(first, 0, dist::Sum{}); });
  CHECK(first.read(job.scope())[0] == 5);
  CHECK(second.read(job.scope())[0] == 5);
}

TEST_CASE("local steps pull once, push nothing and reject gradients") {
  ServedJob<Counted> job(1, 1);
  auto& strategy = job.strategy();
  auto variable = strategy.variable<float, dist::OnWrite>({2}, 1.0F);
  auto sums = strategy.variable<float, dist::OnRead, dist::Sum>({2}, 10.0F);
  auto& cache = strategy.variable_cache();
  const auto scope = strategy.scope();
  forget_calls();
  {
    const dist::server::VariableCache<Counted>::LocalSteps local{cache};
    for (int step = 0; step < 3; ++step)
      strategy.run([&](auto& replica) {
        CHECK(variable.read(replica)[0] == 1);
        sums.assign_add(replica, 2.0F);
      });
    CHECK(sums.read(scope)[0] == 6);
    sums.assign(scope, 0.0F);
    CHECK(sums.read(scope)[1] == 0);
    const std::vector<float> gradients(2);
    CHECK(support::what_throws([&] {
            cache.push_updates(
                *ShardServer::on_servers(variable), {0, 1}, std::span<const float>{gradients},
                [](std::size_t) { return dist::Sum{}; }, 0);
          }) ==
          "On a ParameterServer, gradients cannot be applied outside a step (an evaluation or a prediction is "
          "running). Call it in a function that a ClusterCoordinator schedules, or in strategy.run.");
  }
  CHECK(Counted::take("store.pull") == 1);
  CHECK(Counted::take("store.push") == 0);
  CHECK(sums.read(scope)[0] == 10);
}

TEST_CASE("other threads wait for the end of a step") {
  ServedJob<Counted> job(1, 1);
  auto& strategy = job.strategy();
  auto variable = strategy.variable<float, dist::OnWrite>({1}, 0.0F);
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread)
    threads.emplace_back([&] {
      for (int step = 0; step < 25; ++step)
        strategy.run([&](auto& replica) { variable.assign(replica, variable.value(replica) + 1); });
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(variable.value(strategy.scope()) == 100);
}

TEST_CASE("variables are numbered in order of creation, and destroyed ones are removed") {
  ServedJob<Counted> job(1, 1);
  auto& strategy = job.strategy();
  auto& cache = strategy.variable_cache();
  const auto first = strategy.variable<float, dist::OnWrite>({1}, 0.0F, "first");
  for (int i = 0; i < 150; ++i) static_cast<void>(strategy.variable<float, dist::OnWrite>({1}));
  const std::uint64_t number = cache.count();
  CHECK(number == 151);
  const auto last = strategy.variable<float, dist::OnWrite>({1}, 0.0F, "last");
  REQUIRE(cache.since(0).size() == 2);
  CHECK(cache.since(0)[0]->spec().name == "first");
  REQUIRE(cache.since(number).size() == 1);
  CHECK(cache.since(number)[0]->spec().name == "last");
}
