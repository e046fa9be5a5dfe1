#include <dist/coordinator/coordinator_state.hpp>

#include <chrono>

#include <doctest/doctest.h>

TEST_CASE("durations are counted and added, and the longest is kept (spec L21)") {
  using namespace std::chrono_literals;
  dist::Durations some, others;
  CHECK(some.mean() == 0ns);
  some.add(2ms);
  some.add(4ms);
  others.add(9ms);
  some.add(others);
  CHECK(some.count == 3);
  CHECK(some.total == 15ms);
  CHECK(some.longest == 9ms);
  CHECK(some.mean() == 5ms);
}
