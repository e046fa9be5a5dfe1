#include <dist/server/error.hpp>

#include <string>

#include <doctest/doctest.h>

TEST_CASE("a StoreError has the parts of its message") {
  const dist::StoreError error{dist::server::Problem::wrong_row, "Shard 'w' has no row 4", "it has 3",
                               "Give another one"};
  CHECK(error.problem() == dist::server::Problem::wrong_row);
  CHECK(std::string{error.what()} == "Shard 'w' has no row 4 (it has 3). Give another one.");
  CHECK(error.said() == "Shard 'w' has no row 4");
  CHECK(error.why() == "it has 3");
  CHECK(error.suggestion() == "Give another one");
}

TEST_CASE("ServerUnavailable is an Unavailable with the server's index and address") {
  try {
    throw dist::ServerUnavailable{2, "10.0.0.1:2222", "is unavailable", "it was not reached", "Start it again"};
  } catch (const dist::Unavailable& error) {
    CHECK(error.rank() == 2);
    CHECK(error.host() == "10.0.0.1:2222");
    CHECK(error.why() == "it was not reached");
    CHECK(std::string{error.what()} ==
          "Parameter server 2 at 10.0.0.1:2222 is unavailable (it was not reached). Start it again.");
  }
}
