#include <dist/coordinator/coordinator_state.hpp>

#include <doctest/doctest.h>

TEST_CASE("failure number server_failures of a server is an error, for each server separately (spec L15)") {
  dist::TransientFailures failures{3, 0};
  CHECK(failures.tolerates_server(0));
  CHECK(failures.tolerates_server(0));
  CHECK(failures.tolerates_server(4));
  CHECK_FALSE(failures.tolerates_server(0));
  CHECK_FALSE(failures.tolerates_server(0));
  CHECK(failures.tolerates_server(4));
  CHECK_FALSE(failures.tolerates_server(4));
  CHECK_FALSE(dist::TransientFailures(1, 0).tolerates_server(0));
}

TEST_CASE("a number of timeouts is ignored (spec L16)") {
  dist::TransientFailures failures{3, 2};
  CHECK(failures.tolerates_timeout());
  CHECK(failures.tolerates_timeout());
  CHECK_FALSE(failures.tolerates_timeout());
  CHECK_FALSE(failures.tolerates_timeout());
  CHECK_FALSE(dist::TransientFailures(3, 0).tolerates_timeout());
}
