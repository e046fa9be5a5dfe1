#pragma once

#include <cstddef>
#include <optional>

#include <dist/core/duration.hpp>
#include <dist/core/error.hpp>

namespace dist {

/// Timeouts and limits of a ClusterCoordinator.
struct CoordinatorOptions {
  /// The type of all times.
  using Duration = std::chrono::nanoseconds;

  /// The maximum number of functions that wait for a worker. When the queue is full, `schedule` waits (spec L02).
  std::size_t queue_capacity = 256 * 1024;
  /// The maximum wait of `schedule` for space in the queue, before it throws DeadlineExceeded; 0: no limit.
  Duration schedule_timeout{0};
  /// The maximum run time of a function; 0: no limit. The coordinator stops a function that exceeds it and runs it
  /// again, up to `ignored_timeouts` times in all (spec L16). With dist::Local, the limit is checked only after the
  /// function returns, because functions run in the coordinator's threads.
  Duration function_timeout{0};
  /// The number of tolerated timeouts of functions and of their calls to parameter servers. Default: a tenth of the
  /// number of workers (spec L16).
  std::optional<std::size_t> ignored_timeouts = {};
  /// The time after which an unreachable worker is an error. The coordinator continues to reconnect (spec L14).
  Duration recovery_timeout = std::chrono::seconds{3600};
  /// The maximum number of runs of a function without a result, because its worker was lost or a call was cancelled:
  /// the function itself may crash its workers. 0: no limit.
  std::size_t most_attempts = 16;
  /// The number of functions that must find a parameter server unavailable before that is an error (spec L15).
  std::size_t server_failures = 3;
  /// Worker i is connected after i times `start_delay`, at most `longest_start_delay` (spec L12), and added workers at
  /// once.
  Duration start_delay{0};
  /// The maximum start delay of a worker (spec L12).
  Duration longest_start_delay = std::chrono::hours{1};
  /// If no function finishes for this long despite work, the state of all workers is printed on stderr; 0: never (spec
  /// L19).
  Duration watchdog_timeout{0};
  /// If no function finishes for this long during `join`, stderr reports what it waits for.
  Duration patience = std::chrono::seconds{10};
  /// The maximum wait of the destructor for running functions to stop.
  Duration end_timeout = std::chrono::seconds{5};
};

namespace detail {

/// Throws InvalidArgument if an option is invalid.
inline void validate(const CoordinatorOptions& options) {
  const auto refuse_negative = [](const char* name, CoordinatorOptions::Duration value) {
    if (value.count() < 0)
      throw InvalidArgument(concat("The option ", name, " of a coordinator is negative"),
                            concat(value.count(), " nanoseconds"), "Give 0 or a positive duration");
  };
  refuse_negative("schedule_timeout", options.schedule_timeout);
  refuse_negative("function_timeout", options.function_timeout);
  refuse_negative("recovery_timeout", options.recovery_timeout);
  refuse_negative("start_delay", options.start_delay);
  refuse_negative("longest_start_delay", options.longest_start_delay);
  refuse_negative("watchdog_timeout", options.watchdog_timeout);
  refuse_negative("patience", options.patience);
  refuse_negative("end_timeout", options.end_timeout);
  if (options.server_failures == 0)
    throw InvalidArgument("The option server_failures of a coordinator is 0",
                          "then no call to a parameter server may fail",
                          "Give 1 or more: with 1, the first failure is an error");
}

}  // namespace detail

}  // namespace dist
