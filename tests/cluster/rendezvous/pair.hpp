/// Two ends of a connection inside a test.
#pragma once

#include <sys/socket.h>

#include <cstdlib>
#include <utility>

#include <dist/cluster/rendezvous/descriptor.hpp>

namespace dist_test {

inline std::pair<dist::rendezvous::Descriptor, dist::rendezvous::Descriptor> socket_pair() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0) std::abort();
  return {dist::rendezvous::Descriptor{ends[0]}, dist::rendezvous::Descriptor{ends[1]}};
}

}  // namespace dist_test
