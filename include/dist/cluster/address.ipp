#pragma once

#include <dist/cluster/address.hpp>
#include <dist/core/error.hpp>

namespace dist {

DIST_INLINE std::string to_string(const Address& address) {
  const bool brackets = address.host.find(':') != std::string::npos;
  return concat(brackets ? "[" : "", address.host, brackets ? "]:" : ":", address.port);
}

[[gnu::cold]] DIST_INLINE Address parse_address(std::string_view written, std::string_view owner) {
  const auto refuse = [&](std::string_view why, std::string_view suggestion) {
    throw InvalidArgument(concat("The address ", quoted(written), " of ", owner, " cannot be used"), why, suggestion);
  };
  constexpr std::size_t longest_host = 253;  // for a domain name, RFC 1035
  constexpr std::size_t largest_port = 65535;
  if (written.find("://") != std::string_view::npos)
    refuse("it begins with a protocol", "Write host:port alone, without grpc:// or another protocol");

  const bool brackets = written.starts_with('[');
  const std::size_t closing = brackets ? written.find(']') : 0;
  if (closing == std::string_view::npos) refuse("a bracket is not closed", "Write an IPv6 address as [::1]:2222");
  const std::size_t colon = brackets ? closing + 1 : written.rfind(':');
  if (colon >= written.size() || written[colon] != ':')
    refuse("it has no port", "Write host:port, such as host0.example:2222");
  if (!brackets && written.find(':') != colon)
    refuse("it has several colons", "Put an IPv6 address into brackets, such as [::1]:2222");

  const std::string_view host = brackets ? written.substr(1, closing - 1) : written.substr(0, colon);
  const std::string_view port = written.substr(colon + 1);
  if (host.empty()) refuse("it has no host", "Write the host's name or IP address before the colon");
  if (host.size() > longest_host)
    refuse("its host name is too long", concat("Use at most ", longest_host, " characters"));
  const std::optional<std::size_t> number = detail::whole_number(port, largest_port);
  if (!number)
    refuse(concat(quoted(port), " is not a port"),
           concat("Write a whole number from 1 to ", largest_port, " after the colon"));
  if (*number == 0) refuse("no task can be reached at port 0", "Write the port that the task listens on");

  Address address;
  for (const char letter : host) {
    const char lower = static_cast<char>(letter >= 'A' && letter <= 'Z' ? letter - 'A' + 'a' : letter);
    const bool digit = (lower >= '0' && lower <= '9') || lower == '.';
    const bool name = (lower >= 'a' && lower <= 'z') || lower == '-' || lower == '_';
    const bool six = (lower >= 'a' && lower <= 'z') || lower == ':' || lower == '%';
    if (!digit && !(brackets ? six : name))
      refuse("its host has a character that is not allowed in host names", "Use letters, digits, hyphens and dots");
    address.host += lower;
  }
  address.port = static_cast<std::uint16_t>(*number);
  return address;
}

DIST_INLINE bool is_loopback(std::string_view host) noexcept {
  return host == "localhost" || host == "localhost.localdomain" || host.ends_with(".localhost") || host == "::1" ||
         host == "0:0:0:0:0:0:0:1" ||
         (host.starts_with("127.") && host.find_first_not_of("0123456789.") == std::string_view::npos);
}

DIST_INLINE bool is_unspecified(std::string_view host) noexcept {
  return host == "0.0.0.0" || host == "::" || host == "0:0:0:0:0:0:0:0";
}

}  // namespace dist

namespace dist::detail {

DIST_INLINE std::optional<std::size_t> whole_number(std::string_view digits, std::size_t most) noexcept {
  if (digits.empty()) return std::nullopt;
  std::size_t number = 0;
  for (const char digit : digits) {
    if (digit < '0' || digit > '9') return std::nullopt;
    const auto value = static_cast<std::size_t>(digit - '0');
    if (value > most || number > (most - value) / 10) return std::nullopt;
    number = 10 * number + value;
  }
  return number;
}

}  // namespace dist::detail
