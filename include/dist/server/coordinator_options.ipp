#pragma once

#include <dist/core/error.hpp>
#include <dist/server/coordinator_options.hpp>

namespace dist::detail {

DIST_INLINE void validate(const CoordinatorOptions& options) {
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
                          "no call to a parameter server may fail then",
                          "Give 1, so that the first failure is an error, or more");
}

}  // namespace dist::detail
