#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <dist/core/config.hpp>

namespace dist::net {

/// Where a task listens, as its list of tasks says: a name or a number, and a port.
struct Endpoint {
  std::string host;
  std::string port;

  bool operator==(const Endpoint&) const = default;
};

[[nodiscard]] std::string to_string(const Endpoint& endpoint);

/// Whether the text itself says that only this machine is meant.
[[nodiscard]] bool names_loopback(std::string_view host);

/// The port as a number. Throws InvalidArgument unless it is one from 1 to 65535.
std::uint16_t port_number(const Endpoint& endpoint);

}  // namespace dist::net

#ifndef DIST_COMPILED
#include <dist/net/endpoint.ipp>
#endif
