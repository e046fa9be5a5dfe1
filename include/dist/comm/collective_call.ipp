#pragma once

#include <dist/comm/collective_call.hpp>
#include <dist/core/text.hpp>

namespace dist {

DIST_COLD std::string describe(const CollectiveCall& call) {
  std::string line{call.operation};
  if (!call.reduction.empty()) line += concat("(", call.reduction, ")");
  if (!call.dtype.empty()) line += concat(" of ", call.elements, " ", call.dtype);
  if (call.operation == "broadcast") line += concat(" from ", call.root);
  return line;
}

namespace detail {

DIST_COLD CollectiveMismatch different_calls(std::string_view member, std::string_view what,
                                             std::string_view more_advice) {
  return {concat("The ", member, "s did not issue the same collectives"), what,
          concat("Call the same collectives with the same extents in the same order on every ", member, more_advice)};
}

DIST_COLD CollectiveMismatch different_calls(std::string_view member, const CollectiveCall& one,
                                             std::string_view described_one, CollectiveCall other,
                                             std::string_view described_other) {
  const std::uint64_t other_place = std::exchange(other.place, one.place);
  const bool same_structure = one.structure == std::exchange(other.structure, one.structure);
  const bool same_counts = one.counts == std::exchange(other.counts, one.counts);
  std::string difference;
  if (one == other && !same_counts) difference = concat(" with different element counts of the ", member, "s");
  if (!same_structure) difference += ", as part of values with a different structure";
  std::string place_of_one;
  std::string place_of_other;
  std::string_view advice;
  if (other_place != one.place) {
    place_of_one = concat(", ", CallSequence::describe(one.place));
    place_of_other = concat(", ", CallSequence::describe(other_place));
    advice = ", and use strategy.run_here for runs of one process";
  }
  return different_calls(
      member, concat(described_one, place_of_one, ", but ", described_other, difference, place_of_other), advice);
}

DIST_COLD DeadlineExceeded workers_missing(std::string_view missing, std::string_view described_call,
                                           std::int64_t nanoseconds, std::string_view last_call) {
  return {concat("Not all workers reached a collective in time: ", missing, " did not"),
          concat(described_call, " and waited ", std::chrono::nanoseconds{nanoseconds}, "; the missing workers' ",
                 last_call),
          "Find out what they wait for, or give the strategy a longer timeout"};
}

DIST_COLD CollectiveMismatch worker_left(std::string_view left, std::string_view described_call,
                                         std::string_view last_call) {
  return {"The workers did not issue the same collectives",
          concat(described_call, ", but ", left, " has ended its strategy; its ", last_call),
          "Call collectives on every worker, and let all workers end together"};
}

}  // namespace detail

}  // namespace dist
