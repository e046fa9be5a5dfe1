// Policies that choose by themselves, and the policy for one node between its workers.
#include <dist/multi_worker.hpp>
// ranks: 1 2 3

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include <dist/comm/auto_all_reduce.hpp>
#include <dist/comm/messages/halving_doubling_all_reduce.hpp>
#include <dist/comm/messages/tree_all_reduce.hpp>
#include <dist/comm/node/node_all_reduce.hpp>

#include <doctest/doctest.h>
#include <support/what_throws.hpp>

TEST_CASE_TEMPLATE("every policy reduces over the replicas of all workers (spec A07, H16, H23)", Ops,
                   dist::AutoAllReduce, dist::NodeAllReduce) {
  for (const std::size_t here : {std::size_t{1}, std::size_t{2}}) {
    CAPTURE(here);
    dist::MultiWorker<Ops> strategy{here};
    CHECK(strategy.describe().find(dist::concat("MultiWorker<", Ops::name, ", Cpu>: ")) == 0);
    const std::size_t replicas = strategy.num_replicas_in_sync();
    const auto all_values = static_cast<float>(replicas);
    const auto of_ids = static_cast<float>(replicas * (replicas - 1)) / 2;

    constexpr std::size_t elements = 1003;
    const auto weights = strategy.template variable<float>({elements}, static_cast<float>(strategy.worker_rank()) + 7);
    const auto gradients = strategy.template buffer<float>({elements});
    const auto found = strategy.run([&](auto& replica) {
      const auto id = static_cast<float>(replica.replica_id().index());
      for (float& gradient : gradients.component(replica)) gradient = id;
      replica.reduce_and_apply(dist::mean, gradients.component(replica), weights.component(replica),
                               [](std::size_t, float weight, float mean) { return weight - mean; });
      dist::Tensor<float> row{{1}};
      row[0] = id + replica.all_reduce(dist::sum, id);
      return row;
    });
    for (std::size_t local = 0; local < here; ++local)
      for (const float weight : weights.component(strategy.scope(), local)) REQUIRE(weight == 7 - of_ids / all_values);
    const dist::Tensor<float> rows = strategy.gather(found, 0);
    REQUIRE(rows.size() == replicas);
    for (std::size_t id = 0; id < replicas; ++id) CHECK(rows[id] == static_cast<float>(id) + of_ids);
    CHECK(strategy.reduce(dist::sum, found)[0] == of_ids + all_values * of_ids);
  }
}

TEST_CASE_TEMPLATE("every policy over messages reduces over workers on separate nodes", Ops, dist::AutoAllReduce,
                   dist::TreeAllReduce, dist::HalvingDoublingAllReduce) {
  dist::MultiWorkerOptions options;
  options.replicas = 2;
  options.hierarchical = false;
  dist::MultiWorker<Ops> strategy{options};
  const std::size_t replicas = strategy.num_replicas_in_sync();
  constexpr std::size_t elements = 20'003;
  const auto wrong = strategy.run([&](auto& replica) {
    const auto id = static_cast<float>(replica.replica_id().index());
    dist::Tensor<float> values{{elements}};
    for (std::size_t i = 0; i < elements; ++i) values[i] = id + static_cast<float>(i % 7);
    const auto sums = replica.all_reduce(dist::sum, values);
    std::size_t mistakes = 0;
    for (std::size_t i = 0; i < elements; ++i)
      mistakes += sums[i] != static_cast<float>(replicas * (replicas - 1) / 2 + replicas * (i % 7));
    return mistakes;
  });
  for (const std::size_t mistakes : wrong) CHECK(mistakes == 0);
}

TEST_CASE("AutoAllReduce between nodes uses given, measured or default thresholds") {
  using Strategy = dist::MultiWorker<dist::AutoAllReduce>;
  dist::MultiWorkerOptions options;
  options.hierarchical = false;
  const auto thresholds = [](const Strategy& strategy) { return strategy.workers().upper()->settings(); };
  {
    const Strategy strategy{options};
    if (strategy.num_workers() == 1) return;  // no choice to make
    CHECK(thresholds(strategy) == dist::thresholds_for(dist::usual_costs, strategy.num_workers()));
  }
  options.measure_thresholds = true;
  {
    const Strategy strategy{options};
    std::vector<dist::AlgorithmThresholds> all_values(strategy.num_workers());
    strategy.workers().all_gather_values("thresholds", thresholds(strategy), std::span{all_values});
    for (const dist::AlgorithmThresholds& each : all_values) CHECK(each == all_values[0]);
    const std::vector<std::size_t> sizes{0, 1 << 10, 16 << 10, 256 << 10, 4 << 20};
    CHECK(std::find(sizes.begin(), sizes.end(), all_values[0].tree_up_to) != sizes.end());
    CHECK(std::find(sizes.begin(), sizes.end(), all_values[0].halving_doubling_up_to) != sizes.end());
  }
  options.thresholds = dist::AlgorithmThresholds{.tree_up_to = 100, .halving_doubling_up_to = 7000};
  Strategy strategy{options};
  CHECK(thresholds(strategy) == *options.thresholds);
  const std::size_t worker = strategy.worker_rank();
  if (worker == 1) options.thresholds->tree_up_to = 200;
  const std::string said = support::what_throws([&] { Strategy{options}; });
  CHECK(said.find("worker 0 has 100 and 7000 bytes, worker 1 has 200 and 7000 bytes") != std::string::npos);
}

TEST_CASE("a policy of one algorithm rejects thresholds") {
  dist::MultiWorkerOptions options;
  options.measure_thresholds = true;
  CHECK_THROWS_AS(dist::MultiWorker<dist::RingAllReduce>{options}, dist::InvalidArgument);
}
