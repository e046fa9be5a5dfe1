#include <dist/comm/messages/algorithm_thresholds.hpp>
// optimised

#include <doctest/doctest.h>

#include <support/simulated_network.hpp>

#include <array>
#include <cstddef>
#include <vector>

using dist::AlgorithmThresholds;
using dist::MessageAlgorithm;

TEST_CASE("thresholds are the maximum bytes of an algorithm, and 0 disables it") {
  constexpr AlgorithmThresholds thresholds{.tree_up_to = 100, .halving_doubling_up_to = 5000};
  CHECK(thresholds.choose(0) == MessageAlgorithm::tree);
  CHECK(thresholds.choose(100) == MessageAlgorithm::tree);
  CHECK(thresholds.choose(101) == MessageAlgorithm::halving_doubling);
  CHECK(thresholds.choose(5000) == MessageAlgorithm::halving_doubling);
  CHECK(thresholds.choose(5001) == MessageAlgorithm::ring);
  CHECK(AlgorithmThresholds{}.choose(0) == MessageAlgorithm::ring);
  CHECK(AlgorithmThresholds{.tree_up_to = 0, .halving_doubling_up_to = 1}.choose(0) ==
        MessageAlgorithm::halving_doubling);
}

TEST_CASE("formulas: the p - 1 - log2 p additional steps of a ring pay for copied bytes") {
  // A message costs the same as copying 100,000 bytes.
  constexpr dist::MessageCosts costs{.latency = 10e-6, .per_copied_byte = 0.1e-9};
  const auto most = [&](std::size_t members) {
    return static_cast<double>(thresholds_for(costs, members).halving_doubling_up_to);
  };
  CHECK(most(1) == 0);
  CHECK(most(2) == 0);  // 1 step either way
  CHECK(most(3) == 0);  // 2 steps either way
  CHECK(most(4) == doctest::Approx(100'000));
  CHECK(most(8) == doctest::Approx(4 * 100'000));
  CHECK(most(9) == doctest::Approx(4 * 100'000));
  CHECK(most(64) == doctest::Approx(57 * 100'000));
  CHECK(most(1024) == doctest::Approx(1013 * 100'000));
  CHECK(thresholds_for(costs, 1024).tree_up_to == 0);
  // At the threshold both take the same time, including the copies that the formulas leave out: each byte in and out.
  const auto threshold = thresholds_for(dist::usual_costs, 64).halving_doubling_up_to;
  const double copies = 2 * static_cast<double>(threshold) * dist::usual_costs.per_copied_byte;
  CHECK(halving_doubling_seconds(dist::usual_costs, threshold, 64) + copies ==
        doctest::Approx(ring_seconds(dist::usual_costs, threshold, 64)));
}

TEST_CASE("without copying costs, many members never use a ring") {
  constexpr dist::MessageCosts costs{.latency = 10e-6};
  CHECK(thresholds_for(costs, 8).choose(~std::size_t{0}) == MessageAlgorithm::halving_doubling);
  CHECK(thresholds_for(costs, 2).choose(~std::size_t{0}) == MessageAlgorithm::ring);
}

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
  // An algorithm is not chosen if it only equals a ring, or is faster again at a larger size.
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
  // Copies take no virtual time: from 4 members on, halving and doubling has fewer messages at all sizes.
  CHECK(measured(2) == dist::AlgorithmThresholds{});
  CHECK(measured(8) == dist::AlgorithmThresholds{.tree_up_to = 0, .halving_doubling_up_to = 4096 * kib});
}
