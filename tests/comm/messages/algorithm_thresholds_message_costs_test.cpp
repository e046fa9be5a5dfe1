#include <dist/comm/messages/algorithm_thresholds.hpp>

#include <doctest/doctest.h>

namespace {

constexpr dist::MessageCosts costs{.latency = 1000, .per_byte = 10, .per_reduced_byte = 1};

}  // namespace

TEST_CASE("doubling_rounds is the logarithm, rounded up") {
  CHECK(dist::detail::doubling_rounds(1) == 0);
  CHECK(dist::detail::doubling_rounds(2) == 1);
  CHECK(dist::detail::doubling_rounds(3) == 2);
  CHECK(dist::detail::doubling_rounds(4) == 2);
  CHECK(dist::detail::doubling_rounds(5) == 3);
  CHECK(dist::detail::doubling_rounds(1024) == 10);
  CHECK(dist::detail::doubling_rounds(1025) == 11);
}

TEST_CASE("one member takes no time") {
  CHECK(ring_seconds(costs, 1000, 1) == 0);
  CHECK(halving_doubling_seconds(costs, 1000, 1) == 0);
  CHECK(tree_seconds(costs, 1000, 1) == 0);
}

TEST_CASE("the times of 800 bytes between 8 members match a calculation by hand") {
  // Each of the 7 steps, or of the 3 rounds together, passes 700 bytes each way and combines 700.
  CHECK(ring_seconds(costs, 800, 8) == doctest::Approx(14 * 1000 + 1400 * 10 + 700));
  CHECK(halving_doubling_seconds(costs, 800, 8) == doctest::Approx(6 * 1000 + 1400 * 10 + 700));
  CHECK(tree_seconds(costs, 800, 8) == doctest::Approx(6 * 1000 + 6 * 800 * 10 + 3 * 800));
}
