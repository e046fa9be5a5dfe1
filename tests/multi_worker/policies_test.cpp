// The policies that choose by themselves, and the one that stays on a node, between the workers of one.
#include <dist/multi_worker.hpp>
// ranks: 1 2 3

#include <cstddef>
#include <span>
#include <string>

#include <dist/comm/auto_all_reduce.hpp>
#include <dist/comm/messages/halving_doubling_all_reduce.hpp>
#include <dist/comm/messages/tree_all_reduce.hpp>
#include <dist/comm/node/node_all_reduce.hpp>

#include <doctest/doctest.h>

TEST_CASE_TEMPLATE("every policy joins the replicas of all workers (spec A07, H16, H23)", Ops, dist::AutoAllReduce,
                   dist::NodeAllReduce) {
  for (const std::size_t here : {std::size_t{1}, std::size_t{2}}) {
    CAPTURE(here);
    dist::MultiWorker<Ops> strategy{here};
    CHECK(strategy.describe().find(dist::text("MultiWorker<", Ops::name, ", Cpu>: ")) == 0);
    const std::size_t replicas = strategy.num_replicas_in_sync();
    const auto of_all = static_cast<float>(replicas);
    const auto of_ids = static_cast<float>(replicas * (replicas - 1)) / 2;

    constexpr std::size_t elements = 1003;
    const auto weights = strategy.template variable<float>({elements}, static_cast<float>(strategy.worker()) + 7);
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
      for (const float weight : weights.component(strategy.scope(), local)) REQUIRE(weight == 7 - of_ids / of_all);
    const dist::Tensor<float> rows = strategy.gather(found, 0);
    REQUIRE(rows.size() == replicas);
    for (std::size_t id = 0; id < replicas; ++id) CHECK(rows[id] == static_cast<float>(id) + of_ids);
    CHECK(strategy.reduce(dist::sum, found)[0] == of_ids + of_all * of_ids);
  }
}

TEST_CASE_TEMPLATE("every policy over messages joins workers that are nodes of their own", Ops, dist::AutoAllReduce,
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
