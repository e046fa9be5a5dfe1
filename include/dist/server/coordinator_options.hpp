#pragma once

#include <cstddef>
#include <optional>

#include <dist/core/config.hpp>
#include <dist/core/duration.hpp>

namespace dist {

/// How long a ClusterCoordinator waits, and which failures it tolerates.
struct CoordinatorOptions {
  using Duration = std::chrono::nanoseconds;

  /// How many functions may wait for a worker. When the queue is full, `schedule` waits for room (spec L02).
  std::size_t queue_capacity = 256 * 1024;
  /// How long `schedule` waits for room before it throws DeadlineExceeded; 0: no limit.
  Duration schedule_timeout{0};
  /// How long a function may run; 0: no limit. A function that takes longer is asked to stop and runs again, up to
  /// `ignored_timeouts` (spec L16). dist::Local runs functions in the coordinator's own threads, so there the limit is
  /// noticed when the function has returned.
  Duration function_timeout{0};
  /// How many timeouts in all, of functions and of their calls to parameter servers, are no error; none: a tenth of the
  /// number of workers (spec L16).
  std::optional<std::size_t> ignored_timeouts = {};
  /// How long a worker may be lost, or not have come yet, before that is an error. It is dialled even then (spec L14).
  Duration recovery_timeout = std::chrono::seconds{3600};
  /// How often a function may run and come to nothing, because its worker is lost or a call of it is cancelled, before
  /// that is an error: it may be what ends its workers. 0: no limit.
  std::size_t most_attempts = 16;
  /// How many functions must find a parameter server gone before that is an error; the functions before run again (spec
  /// L15).
  std::size_t server_failures = 3;
  /// Worker i is dialled `start_delay` times i after the first, but not later than `longest_start_delay` (spec L12). A
  /// worker that is added is dialled at once.
  Duration start_delay{0};
  Duration longest_start_delay = std::chrono::hours{1};
  /// When no function has ended for so long, though some wait or run, the state of all workers is printed on stderr; 0:
  /// never (spec L19).
  Duration watchdog_timeout{0};
  /// When no function has ended for so long while `join` waits, stderr says what it waits for.
  Duration patience = std::chrono::seconds{10};
  /// How long the destructor waits for functions that it has asked to stop.
  Duration end_timeout = std::chrono::seconds{5};
};

namespace detail {

/// Throws InvalidArgument for options that make no sense.
void validate(const CoordinatorOptions& options);

}  // namespace detail

}  // namespace dist

#ifndef DIST_COMPILED
#include <dist/server/coordinator_options.ipp>
#endif
