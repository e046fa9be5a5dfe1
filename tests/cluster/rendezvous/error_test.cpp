#include <dist/cluster/rendezvous/error.hpp>

#include <doctest/doctest.h>

#include <cerrno>

TEST_CASE("errors of the rendezvous follow the grammar of all errors") {
  const dist::RendezvousError error{"Worker 1 has come twice", "a second process", "Give every process its own index"};
  CHECK(std::string{error.what()} == "Worker 1 has come twice (a second process). Give every process its own index.");
  CHECK_THROWS_AS(throw error, dist::Error);
  CHECK_THROWS_AS(throw dist::rendezvous::FrameError("a", "b", "c"), dist::Error);
}

TEST_CASE("what the system says") {
  CHECK(dist::rendezvous::system_text(ECONNREFUSED) == "Connection refused");
  errno = EACCES;
  CHECK(dist::rendezvous::system_text() == "Permission denied");
}
