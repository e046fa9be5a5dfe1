#include <dist/comm/health/timeout.hpp>

#include <doctest/doctest.h>

using dist::detail::longer;
using namespace std::chrono_literals;

TEST_CASE("who waits for what happens between others waits longer, but not for ever longer") {
  CHECK(longer(10min, 1) == 10min + 5s);
  CHECK(longer(10min, 8) == 10min + 40s);
  CHECK(longer(200ms, 8) == 1800ms);
  CHECK(longer(0s, 8) == 0s);  // as long as it takes
  CHECK(longer(std::chrono::nanoseconds::max() - 1s, 8) == std::chrono::nanoseconds::max());
}
