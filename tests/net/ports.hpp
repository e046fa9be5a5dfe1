/// Ports of this machine that are free now.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstddef>
#include <string>
#include <vector>

#include <dist/io/descriptor.hpp>
#include <dist/net/endpoint.hpp>

namespace dist_test {

/// Different from each other, as all are bound at the same time.
inline std::vector<dist::net::Endpoint> free_endpoints(std::size_t count) {
  std::vector<dist::net::Endpoint> endpoints;
  std::vector<dist::io::Descriptor> sockets;
  for (std::size_t i = 0; i < count; ++i) {
    sockets.emplace_back(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    if (bind(sockets.back().get(), reinterpret_cast<const sockaddr*>(&address), size) != 0) continue;
    getsockname(sockets.back().get(), reinterpret_cast<sockaddr*>(&address), &size);
    endpoints.push_back({"127.0.0.1", std::to_string(ntohs(address.sin_port))});
  }
  return endpoints;
}

}  // namespace dist_test
