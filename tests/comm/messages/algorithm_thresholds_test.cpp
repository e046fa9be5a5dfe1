#include <dist/comm/messages/algorithm_thresholds.hpp>

#include <doctest/doctest.h>

#include <cstddef>

using dist::AlgorithmThresholds;
using dist::MessageAlgorithm;

TEST_CASE("thresholds are the most bytes of an algorithm, and 0 is none") {
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

TEST_CASE("the formulas: a ring has (p - 1 - log2 p) steps more, which pay for so many copied bytes") {
  // A message costs as much as copying 100,000 bytes.
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
  // At the threshold both take the same time, with the copies that the formulas leave out: each byte in and out.
  const auto threshold = thresholds_for(dist::usual_costs, 64).halving_doubling_up_to;
  const double copies = 2 * static_cast<double>(threshold) * dist::usual_costs.per_copied_byte;
  CHECK(halving_doubling_seconds(dist::usual_costs, threshold, 64) + copies ==
        doctest::Approx(ring_seconds(dist::usual_costs, threshold, 64)));
}

TEST_CASE("copies that cost nothing leave nothing for a ring of many members") {
  constexpr dist::MessageCosts costs{.latency = 10e-6};
  CHECK(thresholds_for(costs, 8).choose(~std::size_t{0}) == MessageAlgorithm::halving_doubling);
  CHECK(thresholds_for(costs, 2).choose(~std::size_t{0}) == MessageAlgorithm::ring);
}
