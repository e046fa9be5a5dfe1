#include <dist/comm/health/timeout.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <cstdint>
#include <limits>

using dist::detail::longest_wait;
using namespace std::chrono_literals;

TEST_CASE("a timeout of 0 means no limit (spec H13)") {
  CHECK(longest_wait(0s) == std::numeric_limits<std::int64_t>::max());
  CHECK(longest_wait(1ns) == 1);
  CHECK(longest_wait(2s) == 2'000'000'000);
}

TEST_CASE("a negative timeout throws (spec H13)") {
  CHECK_THROWS_WITH_AS(static_cast<void>(longest_wait(-1500ms)),
                       "A timeout of collectives is negative (-1.5 s was given). "
                       "Give a positive timeout, or 0 to wait as long as it takes.",
                       dist::InvalidArgument);
}
