#include <dist/comm/even_shards.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include <conformance/simulated.hpp>
#include <dist/core/aligned_buffer.hpp>
#include <support/simulated_network.hpp>

TEST_CASE("shards are in rank order for any assignment of replicas to nodes, with correct sums and weights") {
  constexpr std::size_t elements = 1003;
  support::SimulatedNetwork network{3, dist::usual_costs, support::Payload::travels, support::RunOn::threads};
  network.run([&](const support::SimulatedNetwork::Communicator& comm) {
    conformance::SimulatedStrategy strategy{comm, 2};
    const auto wrong = strategy.run([&](auto& replica) {
      const dist::EvenShards ops{replica.collectives()};
      const std::size_t rank = replica.replica_id().index();
      const dist::IndexRange mine = dist::shard_of(elements, rank, 6, dist::cache_line / sizeof(float));
      std::vector<float> values(elements);
      for (std::size_t i = 0; i < elements; ++i) values[i] = static_cast<float>(i + rank);
      std::string mistakes;
      std::size_t seen = mine.begin;
      ops.reduce_scatter(dist::sum, std::span<const float>{values},
                         [&](std::size_t first, std::span<const float> sums) {
                           if (first != seen) mistakes += "another shard; ";
                           for (const float sum : sums)
                             if (sum != static_cast<float>(6 * seen++ + 15)) mistakes += "a wrong sum; ";
                         });
      if (seen != mine.end) mistakes += "a shard of another size; ";
      // The result shows which member updated the element.
      const auto owned = [&](std::size_t, float weight, float mean) {
        return weight + 1000 * static_cast<float>(rank) + mean;
      };
      std::vector<float> fused(elements, 1.0F), halves(elements, 1.0F), means(elements);
      for (std::size_t i = 0; i < elements; ++i) means[i] = static_cast<float>(i) + 2.5F;
      ops.reduce_and_apply(dist::mean, std::span<const float>{values}, std::span<float>{fused}, owned);
      ops.update_shards(std::span<const float>{means}, std::span<float>{halves}, owned);
      for (std::size_t owner = 0; owner < 6; ++owner) {
        const dist::IndexRange shard = dist::shard_of(elements, owner, 6, dist::cache_line / sizeof(float));
        for (std::size_t i = shard.begin; i < shard.end; ++i) {
          const float expected = 1.0F + 1000 * static_cast<float>(owner) + static_cast<float>(i) + 2.5F;
          if (fused[i] != expected || halves[i] != expected) mistakes += "a wrong weight; ";
        }
      }
      return mistakes;
    });
    for (const std::string& each : wrong) CHECK(each == "");
  });
}
