#pragma once

#include <dist/coordinator/transient_failures.hpp>

namespace dist {

DIST_INLINE bool TransientFailures::tolerates_server(std::size_t server) {
  const std::lock_guard lock{mutex_};
  return ++of_servers_[server] < server_failures_;
}
DIST_INLINE bool TransientFailures::tolerates_timeout() {
  const std::lock_guard lock{mutex_};
  return ++timeouts_ <= ignored_timeouts_;
}

}  // namespace dist
