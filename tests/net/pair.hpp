/// Two connected sockets within a test.
#pragma once

#include <sys/socket.h>

#include <cstdlib>
#include <utility>

#include <dist/io/file.hpp>

namespace dist_test {

inline std::pair<dist::io::Descriptor, dist::io::Descriptor> socket_pair() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0) std::abort();
  return {dist::io::Descriptor{ends[0]}, dist::io::Descriptor{ends[1]}};
}

}  // namespace dist_test
