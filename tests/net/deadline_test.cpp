#include <dist/net/deadline.hpp>

#include <doctest/doctest.h>

using namespace std::chrono_literals;
using dist::net::Deadline;
using dist::net::Milliseconds;

TEST_CASE("a deadline passes, and returns the remaining time") {
  CHECK(Deadline::in(0ms).passed());
  CHECK(Deadline::in(-5ms).left() == 0ms);
  const Deadline later = Deadline::in(1h);
  CHECK_FALSE(later.passed());
  CHECK(later.left() <= 1h);
  CHECK(later.left() > 59min);
  CHECK(later.poll_timeout(250ms) == 250);
  CHECK(later.sooner(Deadline::in(0ms)).passed());
  CHECK_FALSE(Deadline::in(0ms).later(1h).passed());
}

TEST_CASE("the longest wait does not overflow") {
  const Deadline never = Deadline::in(Milliseconds::max());
  CHECK_FALSE(never.passed());
  CHECK(never.left() > std::chrono::hours{24 * 3000});
}
