#include <dist/server/server_store.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include <dist/context/strategy.hpp>
#include <dist/variable/cached_reads.hpp>
#include <dist/variable/partitioner.hpp>

#include "coordinator/served_job.hpp"
#include "support/what_throws.hpp"

using dist::Local;
using dist_test::Counted;
using dist_test::ServedJob;

static_assert(dist::RemoteStore<dist::ServerStore<Local>>);
static_assert(!dist::RemoteStore<dist::MirroredStore>);

namespace {

std::vector<float> values_of(const auto& values) { return {values.elements().begin(), values.elements().end()}; }

}  // namespace

TEST_CASE("outside steps, a read pulls changes and a write is a push") {
  ServedJob<Counted> job(2, 1, {.partitioner = dist::FixedShards{2}});
  const auto scope = job.scope();
  auto variable = job.strategy().variable<float, dist::OnWrite>({4}, std::vector<float>{1, 2, 3, 4}, "v");
  Counted::take("store.push");
  CHECK(values_of(variable.read(scope)) == std::vector<float>{1, 2, 3, 4});
  variable.assign(scope, std::vector<float>{5, 6, 7, 8});
  variable.assign_add(scope, 1.0F);
  variable.assign_sub(scope, 2.0F);
  CHECK(Counted::take("store.push") == 3 * 2);
  CHECK(values_of(variable.read(scope)) == std::vector<float>{4, 5, 6, 7});
}

TEST_CASE("a step sees variables as of their first use, and its own writes") {
  ServedJob<Local> job(2, 1, {.partitioner = dist::FixedShards{2}});
  auto& strategy = job.strategy();
  auto variable = strategy.variable<float, dist::OnWrite, dist::Sum>({4}, 1.0F, "v");
  auto counts = strategy.variable<float, dist::OnRead, dist::Sum>({2}, 10.0F, "counts");
  auto state = strategy.variable<float, dist::OnRead, dist::Mean>({2}, 3.0F, "state");
  const auto scope = strategy.scope();
  strategy.run([&](auto& replica) {
    CHECK(variable.read(replica)[0] == 1);
    variable.assign(replica, 5.0F);
    variable.assign_add(replica, dist::Tensor<float>{{4}});
    CHECK(variable.read(replica)[3] == 5);
    CHECK(counts.read(replica)[1] == 0);  // only what this step adds
    counts.assign_add(replica, 2.0F);
    counts.component(replica)[1] += 1;
    CHECK(state.read(replica)[0] == 3);
    state.component(replica)[0] = 4;
  });
  CHECK(values_of(variable.read(scope)) == std::vector<float>{5, 5, 5, 5});
  CHECK(values_of(counts.read(scope)) == std::vector<float>{12, 13});
  CHECK(values_of(state.read(scope)) == std::vector<float>{4, 3});
  counts.assign(scope, 1.0F);
  CHECK(values_of(counts.whole(scope)) == std::vector<float>{1, 1});
  // Unchanged variables are not pushed.
  strategy.run([&](auto& replica) {
    CHECK(counts.read(replica)[0] == 0);
    CHECK(state.read(replica)[0] == 4);
  });
  CHECK(values_of(counts.read(scope)) == std::vector<float>{1, 1});
}

TEST_CASE("a sum assigned outside the replica is that value plus what the step adds") {
  ServedJob<Local> job(1, 1);
  auto counts = job.strategy().variable<float, dist::OnRead, dist::Sum>({2}, 10.0F);
  job.strategy().run([&](auto& replica) {
    counts.assign_add(replica, 1.0F);
    replica.merge_call([&](const auto& scope) { counts.assign(scope, 5.0F); });
    counts.assign_add(replica, 2.0F);
  });
  CHECK(counts.read(job.scope())[1] == 7);
}

TEST_CASE("a step that throws pushes nothing") {
  ServedJob<Local> job(1, 1);
  auto& strategy = job.strategy();
  auto variable = strategy.variable<float, dist::OnWrite>({2}, 1.0F);
  auto counts = strategy.variable<float, dist::OnRead, dist::Sum>({2}, 0.0F);
  const auto step = [&](auto& replica, bool throws) {
    variable.assign(replica, 9.0F);
    counts.assign_add(replica, 1.0F);
    if (throws) throw std::runtime_error("a step");
    return 7;
  };
  CHECK_THROWS_AS(strategy.run(step, true), std::runtime_error);
  CHECK(variable.read(strategy.scope())[0] == 1);
  CHECK(counts.read(strategy.scope())[0] == 0);
  CHECK(strategy.run(step, false) == 7);
  CHECK(variable.read(strategy.scope())[1] == 9);
  CHECK(counts.read(strategy.scope())[1] == 1);
}

TEST_CASE("unchanged values are not pulled again") {
  ServedJob<Local> job(2, 1, {.partitioner = dist::FixedShards{2}});
  auto& strategy = job.strategy();
  auto variable = strategy.variable<float, dist::OnWrite>({4}, 1.0F, "v");
  CHECK(variable.read(strategy.scope())[0] == 1);
  strategy.run([&](auto& replica) {
    for (float& element : variable.component(replica)) element = 9;  // a local change, to detect what is pulled
  });
  auto other = strategy.variable<float, dist::OnWrite>({4}, 2.0F);
  CHECK(values_of(variable.read(strategy.scope())) == std::vector<float>{9, 9, 9, 9});
  variable.assign_add(strategy.scope(), 1.0F);
  CHECK(values_of(variable.read(strategy.scope())) == std::vector<float>{2, 2, 2, 2});
}

TEST_CASE("each tensor of a layout is placed and divided separately (spec J04, J06), and dropped with the variable") {
  // A kernel of 6 x 5 elements has 120 bytes, all other tensors have less than 64.
  ServedJob<Local> job(2, 1, {.partitioner = dist::MinSizeShards{.min_shard_bytes = 60, .max_shards = 8}});
  auto& strategy = job.strategy();
  const auto shards_on_first = [&] {
    const auto kept = strategy.variable<float>({1});
    return kept.shards()[0].client(job.scope())->list().size() + kept.shards()[0].place().server * 100;
  };
  const dist::VariableTensor layout[] = {{"dense", 0, "kernel", {6, 5}, 0},
                                         {"dense", 0, "bias", {5}, 32},
                                         {"dense", 1, "kernel", {5, 3}, 48},
                                         {"dense", 1, "bias", {3}, 64}};
  {
    const auto parameters =
        strategy.variable<float, dist::OnWrite>({80}, 0.5F, "parameters", dist::Trainable::yes, layout);
    std::vector<std::string> names;
    std::vector<std::uint64_t> servers;
    for (const auto& shard : dist::ServerStore<Local>::on_servers(parameters)->spec().shards) {
      names.push_back(shard.place.name);
      servers.push_back(shard.place.server);
    }
    CHECK(names == std::vector<std::string>{"dense/kernel/part_0", "dense/kernel/part_1", "dense/bias",
                                            "dense_1/kernel", "dense_1/bias"});
    CHECK(servers == std::vector<std::uint64_t>{0, 1, 0, 1, 0});
    CHECK(parameters.read(job.scope())[47] == 0.5F);
    CHECK(shards_on_first() == 1 + 2 + 100);
  }
  CHECK(shards_on_first() == 1);
}

TEST_CASE("cached reads keep the first value, for variables with and without a local copy (spec B17, G43)") {
  ServedJob<Local> job(2, 1, {.partitioner = dist::FixedShards{2}});
  auto& strategy = job.strategy();
  auto copied = strategy.variable<float, dist::OnWrite, dist::Mean>({2}, 4.0F, "v");
  auto table = strategy.variable<float>({3, 2}, 1.0F, "table");
  auto number = strategy.variable<std::int64_t>({}, 7, "number");
  const auto scope = strategy.scope();
  const auto check = [&](const auto& context) {
    const dist::CachedReads cached{context};
    CHECK(copied.read(cached)[0] == 4);
    CHECK(table.read(cached)[5] == 1);
    CHECK(number.value(cached) == 7);
    table.assign_add(scope, 1.0F);
    number.assign(scope, 8);
    CHECK(copied.read(cached)[1] == 4);
    CHECK(table.read(cached)[5] == 1);
    CHECK(number.value(cached) == 7);
    CHECK(number.read(cached)[0] == 7);
    CHECK(table.read(context)[5] == 2);
    CHECK(number.value(context) == 8);
    table.assign(scope, 1.0F);
    number.assign(scope, 7);
  };
  check(scope);
  strategy.run([&](auto& replica) { check(replica); });
  const auto on_worker = [](auto& worker, auto& its_table) {
    const dist::CachedReads cached{worker};
    const float before = its_table.read(cached)[0];
    its_table.assign_add(worker, 5.0F);
    return std::vector<float>{before, its_table.read(cached)[0], its_table.read(worker)[0]};
  };
  CHECK(job.coordinator().schedule(on_worker, table).fetch() == std::vector<float>{1, 1, 6});
  copied.assign(scope, 5.0F);
  CHECK(support::what_throws([&] { (void)table.value(scope); }) ==
        "Variable 'table' has no single value (its shape is [3, 2]). Use read for variables with several elements.");
}

TEST_CASE("gradients outside a step are rejected") {
  ServedJob<Local> job(1, 1);
  auto variable = job.strategy().variable<float, dist::OnWrite>({2}, 4.0F, "v");
  auto& cache = job.strategy().variable_cache();
  auto& cached = *dist::ServerStore<Local>::on_servers(variable);
  const std::vector<float> gradients(2);
  const auto functor = [](std::size_t) { return dist::Sum{}; };
  CHECK(support::what_throws([&] {
          cache.push_updates(cached, {0, 1}, std::span<const float>{gradients}, functor, 0);
        }) ==
        "On a ParameterServer, gradients cannot be applied outside a step (no function is running). Call it in a "
        "function that a ClusterCoordinator schedules, or in strategy.run.");
}
