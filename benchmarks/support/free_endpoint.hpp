#pragma once

#include <sys/socket.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include <dist/io/file.hpp>
#include <dist/net/endpoint.hpp>
#include <dist/net/listen.hpp>

namespace bench {

/// Returns an unused port of this machine.
inline dist::net::Endpoint free_endpoint() {
  dist::net::SocketAddress address = dist::net::resolve({"127.0.0.1", "0"}).addresses.front();
  const dist::io::Descriptor socket{::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC, 0)};
  if (bind(socket.get(), address.get(), address.size) != 0) {
    std::perror("bind");
    std::exit(1);
  }
  getsockname(socket.get(), address.get(), &address.size);
  return {"127.0.0.1", std::to_string(ntohs(reinterpret_cast<const sockaddr_in*>(address.get())->sin_port))};
}

}  // namespace bench
