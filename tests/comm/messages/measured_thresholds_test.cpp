#include <dist/comm/messages/measured_thresholds.hpp>
// optimised

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <vector>

#include <support/simulated_network.hpp>

namespace {

constexpr std::size_t kib = 1024;

}  // namespace

TEST_CASE("an algorithm is chosen up to the last size at which it was the fastest, from the smallest one on") {
  using Sizes = std::array<dist::MeasuredAlgorithms, 3>;  // seconds of tree, halving and doubling, ring
  const auto thresholds = [](const Sizes& sizes) { return dist::thresholds_from(sizes); };
  CHECK(thresholds(Sizes{{{10, {1, 2, 3}}, {20, {3, 2, 3}}, {30, {3, 3, 2}}}}) ==
        dist::AlgorithmThresholds{.tree_up_to = 10, .halving_doubling_up_to = 20});
  CHECK(thresholds(Sizes{{{10, {1, 2, 3}}, {20, {1, 2, 3}}, {30, {2, 3, 1}}}}) ==
        dist::AlgorithmThresholds{.tree_up_to = 20, .halving_doubling_up_to = 0});
  CHECK(thresholds(Sizes{{{10, {3, 2, 3}}, {20, {3, 2, 3}}, {30, {3, 2, 3}}}}) ==
        dist::AlgorithmThresholds{.tree_up_to = 0, .halving_doubling_up_to = 30});
  // What is as fast as a ring is not chosen, nor what is faster again at a larger size only.
  CHECK(thresholds(Sizes{{{10, {3, 3, 3}}, {20, {1, 1, 3}}, {30, {1, 1, 3}}}}) == dist::AlgorithmThresholds{});
}

TEST_CASE("members measure their network, and all get the same thresholds") {
  const auto measured = [](std::size_t ranks) {
    support::SimulatedNetwork network{ranks, {.latency = 10e-6, .per_byte = 0.8e-9, .per_reduced_byte = 0.1e-9}};
    std::vector<dist::AlgorithmThresholds> of_rank(ranks);
    static_cast<void>(network.run([&](const support::SimulatedNetwork::Communicator& comm) {
      of_rank[comm.rank()] = dist::measured_thresholds(comm, [&] { return comm.seconds(); });
    }));
    for (const dist::AlgorithmThresholds& thresholds : of_rank) CHECK(thresholds == of_rank[0]);
    return of_rank[0];
  };
  // Nothing is copied in virtual time: halving and doubling has fewer messages at all sizes, from 4 members on.
  CHECK(measured(2) == dist::AlgorithmThresholds{});
  CHECK(measured(8) == dist::AlgorithmThresholds{.tree_up_to = 0, .halving_doubling_up_to = 4096 * kib});
}
