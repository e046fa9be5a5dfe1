#pragma once

#include <cstddef>
#include <optional>

#include <dist/coordinator/closure_queue.hpp>
#include <dist/core/duration.hpp>
#include <dist/core/error.hpp>

namespace dist {

/// How a ClusterCoordinator waits, and what it puts up with.
struct CoordinatorOptions {
  using Duration = std::chrono::nanoseconds;

  /// Functions that wait for a worker at most; `schedule` waits for room then (spec L02).
  std::size_t queue_capacity = ClosureQueue::default_capacity;
  /// For how long `schedule` waits for room before it throws DeadlineExceeded; 0: as long as it takes.
  Duration schedule_timeout{0};
  /// For how long a function may run; 0: as long as it takes. One that takes longer is asked to stop, runs again, and
  /// fails in the end (spec L16).
  Duration function_timeout{0};
  /// How many functions in all may take too long, or call parameter servers that do, before that is an error; none: a
  /// tenth of the number of workers (spec L16).
  std::optional<std::size_t> ignored_timeouts = {};
  /// For how long a worker is dialled that is lost, or does not come, before that is an error; it is dialled further on
  /// (spec L14).
  Duration recovery_timeout = std::chrono::seconds{3600};
  /// How many workers in a row a function may lose before that is an error: it seems to end them. 0: any number.
  std::size_t most_lost_workers = 16;
  /// The call to a parameter server that finds it gone for the `server_failures`th time is an error; what was running
  /// at those before runs again (spec L15).
  std::size_t server_failures = 3;
  /// Worker i begins `start_delay` times i later, but not later than `longest_start_delay` (spec L12).
  Duration start_delay{0};
  Duration longest_start_delay = std::chrono::hours{1};
  /// Where no function has ended for so long, though some wait or run, the state of all workers is printed; 0: never
  /// (spec L19).
  Duration watchdog_timeout{0};
  /// For how long the destructor waits for functions that it has asked to stop.
  Duration end_timeout = std::chrono::seconds{5};
};

namespace detail {

/// Throws InvalidArgument for what no coordinator could work with.
inline void validate(const CoordinatorOptions& options) {
  const auto refuse_negative = [](const char* name, CoordinatorOptions::Duration value) {
    if (value.count() < 0)
      throw InvalidArgument(text("The option ", name, " of a coordinator is negative"),
                            text(value.count(), " nanoseconds"), "Give 0 or a positive duration");
  };
  refuse_negative("schedule_timeout", options.schedule_timeout);
  refuse_negative("function_timeout", options.function_timeout);
  refuse_negative("recovery_timeout", options.recovery_timeout);
  refuse_negative("start_delay", options.start_delay);
  refuse_negative("longest_start_delay", options.longest_start_delay);
  refuse_negative("watchdog_timeout", options.watchdog_timeout);
  refuse_negative("end_timeout", options.end_timeout);
  if (options.server_failures == 0)
    throw InvalidArgument("The option server_failures of a coordinator is 0",
                          "no call to a parameter server may fail then",
                          "Give 1, so that the first failure is an error, or more");
}

}  // namespace detail

}  // namespace dist
