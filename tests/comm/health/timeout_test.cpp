#include <dist/comm/health/timeout.hpp>

#include <doctest/doctest.h>

#include <support/end_of.hpp>

#include <cstdio>

using dist::detail::longer;
using namespace std::chrono_literals;

TEST_CASE("longer extends timeouts by a limited time") {
  CHECK(longer(10min, 1) == 10min + 5s);
  CHECK(longer(10min, 8) == 10min + 40s);
  CHECK(longer(200ms, 8) == 1800ms);
  CHECK(longer(0s, 8) == 0s);  // no limit
  CHECK(longer(std::chrono::nanoseconds::max() - 1s, 8) == std::chrono::nanoseconds::max());
}

TEST_CASE("end_process prints the blocking call and the reason, and exits with the status") {
  const support::End end = support::end_of([] {
    dist::detail::end_process("a collective", dist::DeadlineExceeded("Replica 1 did not come", "it sleeps", "Wake it"),
                              dist::detail::exit_late, [] { std::fputs("last\n", stderr); });
  });
  CHECK(end.status == 71);
  CHECK(end.said ==
        "dist: stuck in a collective and ended with status 71: Replica 1 did not come (it sleeps). Wake it.\nlast\n");
}
