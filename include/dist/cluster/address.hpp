#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include <dist/core/config.hpp>

namespace dist {

/// Where a task listens.
struct Address {
  std::string host;  ///< a name or a number; an IPv6 number without its brackets
  std::uint16_t port = 0;

  friend bool operator==(const Address&, const Address&) = default;
};

/// "host:port", with brackets around an IPv6 number.
[[nodiscard]] std::string to_string(const Address& address);

/// Reads "host:port", "10.0.0.1:port" or "[::1]:port". Host names come out in lower case, so that equal ones are equal.
/// Throws InvalidArgument that names `owner`, such as "worker 1 of TF_CONFIG" (spec M25).
[[nodiscard]] Address parse_address(std::string_view written, std::string_view owner);

/// Whether `host`, in lower case, always means the machine that asks: localhost, 127.x.x.x or ::1. What other names
/// mean, only the resolver of names knows.
[[nodiscard]] bool is_loopback(std::string_view host) noexcept;

/// Whether `host` means every interface of a machine, which nobody can connect to: 0.0.0.0 or ::.
[[nodiscard]] bool is_unspecified(std::string_view host) noexcept;

}  // namespace dist

namespace dist::detail {

/// The number that `digits` writes: decimal digits only, without sign or space, at most `most`.
[[nodiscard]] std::optional<std::size_t> whole_number(
    std::string_view digits, std::size_t most = std::numeric_limits<std::size_t>::max()) noexcept;

}  // namespace dist::detail

#ifndef DIST_COMPILED
#include <dist/cluster/address.ipp>
#endif
