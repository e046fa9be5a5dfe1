#include <dist/net/error.hpp>

#include <doctest/doctest.h>

#include <cerrno>

TEST_CASE("errors of the rendezvous follow the grammar of all errors") {
  const dist::RendezvousError error{"Worker 1 has joined twice", "a second process",
                                    "Give every process its own index"};
  CHECK(std::string{error.what()} == "Worker 1 has joined twice (a second process). Give every process its own index.");
  CHECK_THROWS_AS(throw error, dist::Error);
  CHECK_THROWS_AS(throw dist::net::FrameError("a", "b", "c"), dist::Error);
}

TEST_CASE("system_text returns the text of an error code") {
  CHECK(dist::net::system_text(ECONNREFUSED) == "Connection refused");
  errno = EACCES;
  CHECK(dist::net::system_text() == "Permission denied");
}
