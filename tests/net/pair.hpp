/// Two ends of a connection inside a test.
#pragma once

#include <sys/socket.h>

#include <cstdlib>
#include <utility>

#include <dist/net/descriptor.hpp>

namespace dist_test {

inline std::pair<dist::net::Descriptor, dist::net::Descriptor> socket_pair() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0) std::abort();
  return {dist::net::Descriptor{ends[0]}, dist::net::Descriptor{ends[1]}};
}

}  // namespace dist_test
