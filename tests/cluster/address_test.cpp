#include <dist/cluster/address.hpp>

#include <doctest/doctest.h>

#include <string>

#include <dist/core/error.hpp>
#include <dist/core/text.hpp>

using dist::Address;
using dist::InvalidArgument;
using dist::parse_address;

TEST_CASE("addresses are parsed, and written unchanged") {
  CHECK(parse_address("host0.example:2222", "worker 0") == Address{"host0.example", 2222});
  CHECK(parse_address("10.0.0.1:1", "worker 0") == Address{"10.0.0.1", 1});
  CHECK(parse_address("[fe80::1%eth0]:65535", "worker 0") == Address{"fe80::1%eth0", 65535});
  for (const std::string written : {"host_0-1.example:2222", "10.0.0.1:80", "[2001:db8::1]:2222"})
    CHECK(to_string(parse_address(written, "worker 0")) == written);
}

TEST_CASE("host names are converted to lower case") {
  CHECK(parse_address("Node-A.Example:2222", "worker 0").host == "node-a.example");
}

TEST_CASE("invalid addresses are refused, naming the task (spec M25)") {
  const auto refused = [](const std::string& written, const std::string& because) {
    CAPTURE(written);
    const std::string message =
        "The address " + dist::quoted(written) + " of worker 1 of TF_CONFIG cannot be used (" + because;
    CHECK_THROWS_WITH_AS(parse_address(written, "worker 1 of TF_CONFIG"), message.c_str(), InvalidArgument);
  };
  refused("host0", "it has no port). Write host:port, such as host0.example:2222.");
  refused("[::1]", "it has no port). Write host:port, such as host0.example:2222.");
  refused("", "it has no port). Write host:port, such as host0.example:2222.");
  refused("host0:", "'' is not a port). Write a whole number from 1 to 65535 after the colon.");
  refused("host0:http", "'http' is not a port). Write a whole number from 1 to 65535 after the colon.");
  refused("host0:65536", "'65536' is not a port). Write a whole number from 1 to 65535 after the colon.");
  refused("host0:-1", "'-1' is not a port). Write a whole number from 1 to 65535 after the colon.");
  refused("host0:0000", "no task can be reached at port 0). Write the port that the task listens on.");
  refused("grpc://host0:2222",
          "it begins with a protocol). Write host:port alone, without grpc:// or another protocol.");
  refused("2001:db8::1:2222", "it has several colons). Put an IPv6 address into brackets, such as [::1]:2222.");
  refused("[::1:2222", "a bracket is not closed). Write an IPv6 address as [::1]:2222.");
  refused(":2222", "it has no host). Write the host's name or IP address before the colon.");
  refused("[]:2222", "it has no host). Write the host's name or IP address before the colon.");
  refused(" host0:2222",
          "its host has a character that is not allowed in host names). Use letters, digits, hyphens and dots.");
  refused("ho\nst:2222",
          "its host has a character that is not allowed in host names). Use letters, digits, hyphens and dots.");
  refused(std::string(254, 'a') + ":2222", "its host name is too long). Use at most 253 characters.");
}

TEST_CASE("loopback and unspecified hosts are recognised by name") {
  for (const char* host : {"localhost", "a.localhost", "127.0.0.1", "127.0.1.1", "::1"}) {
    CAPTURE(host);
    CHECK(dist::is_loopback(host));
    CHECK_FALSE(dist::is_unspecified(host));
  }
  for (const char* host : {"0.0.0.0", "::"}) {
    CAPTURE(host);
    CHECK(dist::is_unspecified(host));
    CHECK_FALSE(dist::is_loopback(host));
  }
  for (const char* host : {"localhost0", "127.example", "10.0.0.1", "128.0.0.1", "mylocalhost"}) {
    CAPTURE(host);
    CHECK_FALSE(dist::is_loopback(host));
    CHECK_FALSE(dist::is_unspecified(host));
  }
}
