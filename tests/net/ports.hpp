/// Ports of this machine for the servers of a test.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstddef>
#include <mutex>
#include <string>
#include <vector>

#include <dist/io/file.hpp>
#include <dist/net/endpoint.hpp>

namespace dist_test {

/// Reserves ports for the lifetime of this process, by binding sockets to them. Servers of the test can listen there,
/// because all of these sockets have SO_REUSEADDR.
inline std::vector<dist::net::Endpoint> free_endpoints(std::size_t count) {
  static std::mutex mutex;
  static std::vector<dist::io::Descriptor> sockets;
  const std::lock_guard lock{mutex};
  std::vector<dist::net::Endpoint> endpoints;
  for (std::size_t i = 0; i < count; ++i) {
    sockets.emplace_back(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const int on = 1;
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    if (setsockopt(sockets.back().get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
        bind(sockets.back().get(), reinterpret_cast<const sockaddr*>(&address), size) != 0)
      continue;
    getsockname(sockets.back().get(), reinterpret_cast<sockaddr*>(&address), &size);
    endpoints.push_back({"127.0.0.1", std::to_string(ntohs(address.sin_port))});
  }
  return endpoints;
}

}  // namespace dist_test
