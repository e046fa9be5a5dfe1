#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <dist/core/error.hpp>
#include <dist/core/text.hpp>

namespace dist::net {

/// The listed endpoint of a task: a name or number, and a port.
struct Endpoint {
  std::string host;  ///< name or number; IPv6 without brackets
  std::string port;  ///< number or service name

  /// Compares the texts: equal endpoints may be listed differently.
  bool operator==(const Endpoint&) const = default;
};

/// Returns "host:port", with brackets around an IPv6 address.
[[nodiscard]] inline std::string to_string(const Endpoint& endpoint) {
  return endpoint.host.find(':') == std::string::npos ? concat(endpoint.host, ":", endpoint.port)
                                                      : concat("[", endpoint.host, "]:", endpoint.port);
}

/// True for loopback names and addresses, without resolving.
[[nodiscard]] inline bool names_loopback(std::string_view host) {
  return host == "localhost" || host.starts_with("localhost.") || host == "ip6-localhost" || host == "::1" ||
         (host.starts_with("127.") && host.find_first_not_of("0123456789.") == std::string_view::npos);
}

/// Throws InvalidArgument unless the port is a number from 1 to 65535.
inline std::uint16_t port_number(const Endpoint& endpoint) {
  std::uint32_t number = 0;
  for (const char digit : endpoint.port)
    number =
        digit < '0' || digit > '9' || number > 65535 ? 70000 : number * 10 + static_cast<std::uint32_t>(digit - '0');
  if (endpoint.port.empty() || number == 0 || number > 65535)
    throw InvalidArgument(concat("Address ", quoted(to_string(endpoint)), " has no port"),
                          concat(quoted(endpoint.port), " is not a number from 1 to 65535"),
                          "Write host:port, for example 10.0.0.1:2222");
  return static_cast<std::uint16_t>(number);
}

}  // namespace dist::net
