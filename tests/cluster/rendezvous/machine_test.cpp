#include <dist/cluster/rendezvous/machine.hpp>

#include <doctest/doctest.h>

#include <unistd.h>

TEST_CASE("a machine has a name and an identity") {
  char name[256];
  REQUIRE(gethostname(name, sizeof name) == 0);
  CHECK(dist::rendezvous::host_name() == name);
  const std::string id = dist::rendezvous::machine_id();
  CHECK(id.size() == 36);  // a UUID, RFC 4122
  CHECK(id == dist::rendezvous::machine_id());
}
