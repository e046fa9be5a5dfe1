#include <dist/server/coordinator_options.hpp>

#include <chrono>

#include <doctest/doctest.h>

#include "support/what_throws.hpp"

TEST_CASE("default options equal the defaults of tf.distribute (spec L02, L14, L15, L19)") {
  using namespace std::chrono_literals;
  const dist::CoordinatorOptions options;
  CHECK(options.queue_capacity == 256 * 1024);
  CHECK(options.recovery_timeout == 1h);
  CHECK(options.server_failures == 3);
  CHECK(options.start_delay == 0ns);
  CHECK(options.watchdog_timeout == 0ns);
  CHECK_NOTHROW(dist::detail::validate(options));
}

TEST_CASE("invalid options are rejected by name") {
  using namespace std::chrono_literals;
  dist::CoordinatorOptions options;
  options.recovery_timeout = -1s;
  CHECK(support::what_throws<dist::InvalidArgument>([&] { dist::detail::validate(options); }) ==
        "The option recovery_timeout of a coordinator is negative (-1000000000 nanoseconds). Give 0 or a positive "
        "duration.");
  options = {};
  options.server_failures = 0;
  CHECK(support::what_throws<dist::InvalidArgument>([&] { dist::detail::validate(options); }) ==
        "The option server_failures of a coordinator is 0 (then no call to a parameter server may fail). Give 1 or "
        "more: with 1, the first failure is an error.");
}
