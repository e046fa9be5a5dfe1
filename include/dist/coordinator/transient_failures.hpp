#pragma once

#include <cstddef>
#include <map>
#include <mutex>

#include <dist/core/config.hpp>

namespace dist {

/// Counts the failures that a coordinator tolerates: functions that run again because a parameter server was gone, or
/// because something took too long. Thread-safe.
class TransientFailures {
 public:
  /// The `server_failures`th failure of a server is an error (spec L15), and so is every timeout after
  /// `ignored_timeouts` (spec L16).
  TransientFailures(std::size_t server_failures, std::size_t ignored_timeouts)
      : server_failures_(server_failures), ignored_timeouts_(ignored_timeouts) {}

  /// Counts a function that found a parameter server gone: true where it runs again.
  [[nodiscard]] bool tolerates_server(std::size_t server);
  /// Counts a function, or its call to a parameter server, that took too long: true where it runs again.
  [[nodiscard]] bool tolerates_timeout();

 private:
  const std::size_t server_failures_;
  const std::size_t ignored_timeouts_;
  std::mutex mutex_;
  std::map<std::size_t, std::size_t> of_servers_;
  std::size_t timeouts_ = 0;
};

}  // namespace dist

#ifndef DIST_COMPILED
#include <dist/coordinator/transient_failures.ipp>
#endif
