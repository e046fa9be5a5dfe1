#include <dist/net/endpoint.hpp>

#include <doctest/doctest.h>

using dist::net::Endpoint;
using dist::net::names_loopback;
using dist::net::port_number;

TEST_CASE("an endpoint is written as host:port") {
  CHECK(to_string(Endpoint{"worker-0.job", "2222"}) == "worker-0.job:2222");
  CHECK(to_string(Endpoint{"fe80::1", "2222"}) == "[fe80::1]:2222");
}

TEST_CASE("ports are numbers from 1 to 65535") {
  CHECK(port_number({"a", "1"}) == 1);
  CHECK(port_number({"a", "65535"}) == 65535);
  for (const char* wrong : {"", "0", "65536", "99999999999999999999", "http", "-1", " 80", "80 "}) {
    CAPTURE(wrong);
    CHECK_THROWS_AS(port_number({"a", wrong}), dist::InvalidArgument);
  }
  CHECK_THROWS_WITH(
      port_number({"a", "http"}),
      "Address 'a:http' has no port ('http' is not a number from 1 to 65535). Write host:port, for example "
      "10.0.0.1:2222.");
}

TEST_CASE("loopback names are recognised") {
  for (const char* host : {"localhost", "127.0.0.1", "127.0.1.1", "::1", "localhost.localdomain"})
    CHECK(names_loopback(host));
  for (const char* host : {"worker-0", "10.0.0.1", "127.example.org", "local"}) CHECK_FALSE(names_loopback(host));
}
