#pragma once

#include <fcntl.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include <dist/core/text.hpp>
#include <dist/io/file.hpp>
#include <dist/net/endpoint.hpp>
#include <dist/net/error.hpp>

namespace dist::net {

/// One resolved address, with a port.
struct SocketAddress {
  sockaddr_storage storage{};  ///< the system's representation
  socklen_t size = 0;          ///< used bytes of `storage`

  /// The address, for system calls.
  [[nodiscard]] const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  /// The address, to be set by system calls.
  [[nodiscard]] sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
  /// The address family, such as AF_INET.
  [[nodiscard]] int family() const { return storage.ss_family; }

  /// True if the addresses are equal, regardless of ports.
  [[nodiscard]] bool has_host_of(const sockaddr& other) const {
    if (family() != other.sa_family) return false;
    const auto bytes = [&](const sockaddr* address, std::size_t offset) {
      return reinterpret_cast<const std::byte*>(address) + offset;
    };
    const std::size_t offset =
        family() == AF_INET ? offsetof(sockaddr_in, sin_addr) : offsetof(sockaddr_in6, sin6_addr);
    const std::size_t length = family() == AF_INET ? sizeof(in_addr) : family() == AF_INET6 ? sizeof(in6_addr) : 0;
    return length != 0 && std::memcmp(bytes(get(), offset), bytes(&other, offset), length) == 0;
  }
  /// True for 127.0.0.0/8 and ::1.
  [[nodiscard]] bool is_loopback() const {
    if (family() == AF_INET) return ntohl(reinterpret_cast<const sockaddr_in*>(&storage)->sin_addr.s_addr) >> 24 == 127;
    return family() == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6*>(&storage)->sin6_addr);
  }
  /// Returns 0.0.0.0 or :: with the same port.
  [[nodiscard]] SocketAddress on_all_interfaces() const {
    SocketAddress all = *this;
    if (family() == AF_INET) reinterpret_cast<sockaddr_in*>(&all.storage)->sin_addr = {};
    if (family() == AF_INET6) reinterpret_cast<sockaddr_in6*>(&all.storage)->sin6_addr = {};
    return all;
  }
  /// Returns the address with another port.
  [[nodiscard]] SocketAddress at_port(std::uint16_t port) const {
    SocketAddress other = *this;
    if (family() == AF_INET) reinterpret_cast<sockaddr_in*>(&other.storage)->sin_port = htons(port);
    if (family() == AF_INET6) reinterpret_cast<sockaddr_in6*>(&other.storage)->sin6_port = htons(port);
    return other;
  }
  /// The port; 0 for other families than IPv4 and IPv6.
  [[nodiscard]] std::uint16_t port() const {
    if (family() == AF_INET) return ntohs(reinterpret_cast<const sockaddr_in*>(&storage)->sin_port);
    return family() == AF_INET6 ? ntohs(reinterpret_cast<const sockaddr_in6*>(&storage)->sin6_port) : std::uint16_t{0};
  }
  /// True for 0.0.0.0 and ::.
  [[nodiscard]] bool is_any() const {
    if (family() == AF_INET) return reinterpret_cast<const sockaddr_in*>(&storage)->sin_addr.s_addr == 0;
    return family() == AF_INET6 && IN6_IS_ADDR_UNSPECIFIED(&reinterpret_cast<const sockaddr_in6*>(&storage)->sin6_addr);
  }
};

/// The numeric address without the port; IPv4 also if an IPv6 socket accepted it.
[[nodiscard]] inline std::string to_string(const SocketAddress& address) {
  char host[NI_MAXHOST];
  if (getnameinfo(address.get(), address.size, host, sizeof host, nullptr, 0, NI_NUMERICHOST) != 0) return "?";
  const std::string_view name = host;
  constexpr std::string_view mapped = "::ffff:";
  return std::string{name.starts_with(mapped) && name.find('.') != name.npos ? name.substr(mapped.size()) : name};
}

/// The local address of a socket.
[[nodiscard]] inline SocketAddress own_address(int socket) {
  SocketAddress address;
  address.size = sizeof address.storage;
  getsockname(socket, address.get(), &address.size);
  return address;
}

/// The addresses of a name, or why it does not resolve.
struct Resolved {
  std::vector<SocketAddress> addresses;  ///< in the resolver's order; empty if the name does not resolve
  std::string problem;                   ///< reason for an empty list
};

/// Blocks up to the timeout of the system's resolver.
[[nodiscard]] inline Resolved resolve(const Endpoint& endpoint) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* list = nullptr;
  const int status = getaddrinfo(endpoint.host.c_str(), endpoint.port.c_str(), &hints, &list);
  if (status != 0)
    return {{},
            concat("the name ", quoted(endpoint.host),
                   " does not resolve: ", status == EAI_SYSTEM ? system_text() : gai_strerror(status))};
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

/// The machine's own name.
[[nodiscard]] inline std::string host_name() {
  utsname names{};
  return uname(&names) == 0 ? names.nodename : "localhost";
}

/// Identifies the machine and its start: equal only for processes that share process IDs, network interfaces and
/// /dev/shm, as MPI's shared memory requires; containers may differ. Begins with the kernel's boot id; empty without
/// one.
[[nodiscard]] inline std::string machine_id() {
  const io::Descriptor file{open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC)};
  char bytes[64];
  const ssize_t size = file ? read(file.get(), bytes, sizeof bytes) : 0;
  std::string id{bytes, static_cast<std::size_t>(size > 0 ? size : 0)};
  while (!id.empty() && id.back() == '\n') id.pop_back();
  for (const char* const shared : {"/proc/self/ns/pid", "/proc/self/ns/net", "/dev/shm"}) {
    struct stat identity {};
    if (!id.empty() && stat(shared, &identity) == 0) id += concat('/', identity.st_dev, '.', identity.st_ino);
  }
  return id;
}

/// The network interface that has `address`, such as "eth0"; empty if none.
[[nodiscard]] inline std::string interface_of(const SocketAddress& address) {
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return {};
  std::string name;
  for (const ifaddrs* each = all; each != nullptr && name.empty(); each = each->ifa_next)
    if (each->ifa_addr != nullptr && address.has_host_of(*each->ifa_addr)) name = each->ifa_name;
  freeifaddrs(all);
  return name;
}

}  // namespace dist::net
