#include <dist/server/client.hpp>

#include <doctest/doctest.h>

#include <dist/core/error.hpp>
#include <dist/rpc/local_transport.hpp>

TEST_CASE("there is one client per server, and a new one for another incarnation") {
  dist::server::Clients<dist::Local> clients{{{"clients", "1"}, {"clients", "2"}}, {}};
  CHECK(clients.size() == 2);
  CHECK(clients.endpoints()[1] == dist::net::Endpoint{"clients", "2"});
  const auto first = clients.of(0, 7);
  CHECK(first->address() == "clients:1");
  CHECK(first->incarnation() == 7);
  CHECK(clients.of(0, 7) == first);
  CHECK(clients.of(1, 7) != first);
  const auto second = clients.of(0, 8);
  CHECK(second != first);
  CHECK(second->incarnation() == 8);
  CHECK_THROWS_WITH_AS((void)clients.of(2, 7), doctest::Contains("The job has no parameter server 2 (it has 2)"),
                       dist::InvalidArgument);
}
