#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include <dist/core/config.hpp>

namespace dist {

/// The endpoint of a task.
struct Address {
  std::string host;        ///< a name or a number; IPv6 without brackets
  std::uint16_t port = 0;  ///< TCP port

  friend bool operator==(const Address&, const Address&) = default;
};

/// "host:port", with brackets around an IPv6 number.
[[nodiscard]] std::string to_string(const Address& address);

/// Parses "host:port", "10.0.0.1:port" or "[::1]:port"; host names become lower case. Throws InvalidArgument naming
/// `owner`, such as "worker 1 of TF_CONFIG" (spec M25).
[[nodiscard]] Address parse_address(std::string_view written, std::string_view owner);

/// True for localhost, 127.x.x.x and ::1, in lower case. Does not resolve names.
[[nodiscard]] bool is_loopback(std::string_view host) noexcept;

/// True for the wildcard addresses 0.0.0.0 and ::.
[[nodiscard]] bool is_unspecified(std::string_view host) noexcept;

}  // namespace dist

namespace dist::detail {

/// Parses decimal digits, without sign or spaces, up to `most`.
[[nodiscard]] std::optional<std::size_t> whole_number(
    std::string_view digits, std::size_t most = std::numeric_limits<std::size_t>::max()) noexcept;

}  // namespace dist::detail

#ifndef DIST_COMPILED
#include <dist/cluster/address.ipp>
#endif
