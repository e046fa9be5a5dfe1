#include <dist/comm/health/end_process.hpp>

#include <doctest/doctest.h>

#include <cstdio>

#include <support/end_of.hpp>

TEST_CASE("a process that is stuck says in what and why, and ends with the status") {
  const support::End end = support::end_of([] {
    dist::detail::end_process("a collective", dist::DeadlineExceeded("Replica 1 did not come", "it sleeps", "Wake it"),
                              dist::detail::exit_late, [] { std::fputs("last\n", stderr); });
  });
  CHECK(end.status == 71);
  CHECK(end.said ==
        "dist: stuck in a collective and ended with status 71: Replica 1 did not come (it sleeps). Wake it.\nlast\n");
}
