#pragma once

#include <dist/core/error.hpp>
#include <dist/core/text.hpp>
#include <dist/net/endpoint.hpp>

namespace dist::net {

DIST_INLINE std::string to_string(const Endpoint& endpoint) {
  return endpoint.host.find(':') == std::string::npos ? concat(endpoint.host, ":", endpoint.port)
                                                      : concat("[", endpoint.host, "]:", endpoint.port);
}

DIST_INLINE bool names_loopback(std::string_view host) {
  return host == "localhost" || host.starts_with("localhost.") || host == "ip6-localhost" || host == "::1" ||
         (host.starts_with("127.") && host.find_first_not_of("0123456789.") == std::string_view::npos);
}

DIST_INLINE std::uint16_t port_number(const Endpoint& endpoint) {
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
