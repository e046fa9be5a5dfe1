#pragma once

#include <dist/core/text.hpp>
#include <dist/server/error.hpp>

namespace dist {

DIST_INLINE StoreError::StoreError(server::Problem problem, std::string_view what, std::string_view why,
                                   std::string_view suggestion)
    : Error(what, why, suggestion), problem_(problem), what_(what), why_(why), suggestion_(suggestion) {}
DIST_INLINE int StoreError::exit_code() const noexcept {
  switch (problem_) {
    case server::Problem::no_memory:
    case server::Problem::lost_variables:
    case server::Problem::in_use:
    case server::Problem::half_changed:
      return ExitCode::try_again;
    default:
      return Error::exit_code();
  }
}

DIST_INLINE ServerUnavailable::ServerUnavailable(std::size_t index, std::string_view address, std::string_view happened,
                                                 std::string_view why, std::string_view suggestion)
    : Unavailable(concat("Parameter server ", index, " at ", address, " ", happened), index, address, why, suggestion) {
}

DIST_INLINE CoordinatorUnavailable::CoordinatorUnavailable(std::string_view self, std::string_view coordinator,
                                                           std::string_view happened)
    : Unavailable(concat(self, " has lost its coordinator"), 0, coordinator, concat(coordinator, " ", happened),
                  "Start the job again from its last checkpoint") {}

DIST_INLINE Preempted::Preempted(std::string_view self, std::string_view why, int exit_code)
    : Error(concat(self, " exits because the job received a stop request"), why, "Start the job again: it continues"),
      exit_code_(exit_code) {}

}  // namespace dist
