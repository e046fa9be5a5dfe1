#include <dist/net/socket_address.hpp>

#include <doctest/doctest.h>

using dist::net::resolve;

TEST_CASE("numeric addresses resolve to themselves") {
  const auto four = resolve({"127.0.1.1", "80"});
  REQUIRE(four.addresses.size() == 1);
  CHECK(to_string(four.addresses[0]) == "127.0.1.1");
  CHECK(four.addresses[0].is_loopback());
  CHECK_FALSE(four.addresses[0].is_any());
  const auto six = resolve({"::1", "80"});
  REQUIRE(six.addresses.size() == 1);
  CHECK(six.addresses[0].is_loopback());
  CHECK(resolve({"0.0.0.0", "80"}).addresses.at(0).is_any());
  CHECK(resolve({"::", "80"}).addresses.at(0).is_any());
  CHECK_FALSE(resolve({"192.0.2.7", "80"}).addresses.at(0).is_loopback());
}

TEST_CASE("an unknown host name is reported") {
  const auto none = resolve({"no-such-host.invalid", "80"});
  CHECK(none.addresses.empty());
  CHECK(none.problem.find("the name 'no-such-host.invalid' does not resolve: ") == 0);
}
