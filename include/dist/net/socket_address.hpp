#pragma once

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstring>
#include <string>
#include <vector>

#include <dist/core/text.hpp>
#include <dist/net/endpoint.hpp>
#include <dist/net/error.hpp>

namespace dist::net {

/// One number that a name stands for.
struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t size = 0;

  [[nodiscard]] const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  [[nodiscard]] sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
  [[nodiscard]] int family() const { return storage.ss_family; }

  /// Of this machine only: 127.0.0.0/8 or ::1.
  [[nodiscard]] bool is_loopback() const {
    if (family() == AF_INET) return ntohl(reinterpret_cast<const sockaddr_in*>(&storage)->sin_addr.s_addr) >> 24 == 127;
    return family() == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6*>(&storage)->sin6_addr);
  }
  /// 0.0.0.0 or ::, which mean all interfaces.
  [[nodiscard]] bool is_any() const {
    if (family() == AF_INET) return reinterpret_cast<const sockaddr_in*>(&storage)->sin_addr.s_addr == 0;
    return family() == AF_INET6 && IN6_IS_ADDR_UNSPECIFIED(&reinterpret_cast<const sockaddr_in6*>(&storage)->sin6_addr);
  }
};

[[nodiscard]] inline std::string to_string(const SocketAddress& address) {
  char host[NI_MAXHOST];
  if (getnameinfo(address.get(), address.size, host, sizeof host, nullptr, 0, NI_NUMERICHOST) != 0) return "?";
  return host;
}

/// The addresses of a name, or why there are none.
struct Resolved {
  std::vector<SocketAddress> addresses;
  std::string problem;
};

/// Asks the system's resolver, which may take as long as it is configured to.
[[nodiscard]] inline Resolved resolve(const Endpoint& endpoint) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* list = nullptr;
  const int status = getaddrinfo(endpoint.host.c_str(), endpoint.port.c_str(), &hints, &list);
  if (status != 0)
    return {{},
            text("the name ", quoted(endpoint.host),
                 " is not known: ", status == EAI_SYSTEM ? system_text() : gai_strerror(status))};
  Resolved resolved;
  for (const addrinfo* entry = list; entry != nullptr; entry = entry->ai_next) {
    if (entry->ai_addrlen > sizeof(sockaddr_storage)) continue;
    SocketAddress address;
    std::memcpy(&address.storage, entry->ai_addr, entry->ai_addrlen);
    address.size = entry->ai_addrlen;
    resolved.addresses.push_back(address);
  }
  freeaddrinfo(list);
  return resolved;
}

}  // namespace dist::net
