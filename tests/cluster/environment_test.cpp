#include <dist/cluster/environment.hpp>

#include <doctest/doctest.h>

#include <cstdlib>
#include <optional>

#include <dist/core/error.hpp>

using dist::Environment;
using dist::InvalidArgument;

TEST_CASE("given variables replace the process's own") {
  ::setenv("DIST_TEST_ENVIRONMENT", "process", 1);
  const Environment given{{{"A", "1"}}};
  CHECK(given.get("A") == "1");
  CHECK_FALSE(given.get("DIST_TEST_ENVIRONMENT"));
  CHECK(Environment{}.get("DIST_TEST_ENVIRONMENT") == "process");
  ::unsetenv("DIST_TEST_ENVIRONMENT");
  CHECK_FALSE(Environment{}.get("DIST_TEST_ENVIRONMENT"));
}

TEST_CASE("counts are parsed, and other values are refused with the variable's name") {
  const Environment environment{{{"N", "12"}, {"WORD", "two"}, {"EMPTY", ""}}};
  CHECK(environment.number("N") == 12);
  CHECK(environment.number("ABSENT") == std::nullopt);
  CHECK_THROWS_WITH_AS(environment.number("WORD"),
                       "The environment variable WORD has a value that cannot be used ('two' is not a whole number). "
                       "Set it to a number, or unset WORD.",
                       InvalidArgument);
  CHECK_THROWS_AS(environment.number("EMPTY"), InvalidArgument);
}

TEST_CASE("a missing required variable is named") {
  const Environment environment{{{"N", "12"}}};
  CHECK(environment.require("N", "why", "do") == "12");
  CHECK(environment.require_number("N", "why", "do") == 12);
  CHECK_THROWS_WITH_AS(environment.require("M", "this is no test", "Set it"),
                       "The environment variable M is not set (this is no test). Set it.", InvalidArgument);
  CHECK_THROWS_AS(environment.require_number("M", "this is no test", "Set it"), InvalidArgument);
}
