#pragma once

#include <cstddef>
#include <cstdint>

#include <dist/core/algorithms.hpp>
#include <dist/core/duration.hpp>

namespace dist {

/// How often something was done, and how long it took.
struct Durations {
  using Duration = std::chrono::nanoseconds;

  std::uint64_t count = 0;
  Duration total{0};
  Duration longest{0};

  void add(Duration duration) {
    ++count;
    total += duration;
    longest = std::max(longest, duration);
  }
  void add(const Durations& others) {
    count += others.count;
    total += others.total;
    longest = std::max(longest, others.longest);
  }
  [[nodiscard]] Duration mean() const { return count == 0 ? Duration{0} : total / static_cast<std::int64_t>(count); }
};

/// What a coordinator and its workers have done so far (spec L21).
struct CoordinatorMetrics {
  std::size_t waiting = 0;      ///< functions that wait for a worker
  std::size_t in_flight = 0;    ///< functions that run
  std::uint64_t finished = 0;   ///< functions with a result
  std::uint64_t failed = 0;     ///< errors
  std::uint64_t cancelled = 0;  ///< functions that did not run, because of an error
  std::uint64_t put_back = 0;   ///< functions that were given to a worker again
  std::uint64_t lost = 0;       ///< losses of workers
  std::size_t workers = 0;
  std::size_t connected = 0;  ///< workers that are there now
  Durations queue_wait;       ///< of functions, until a worker takes them
  Durations execution;        ///< of functions with a result, with the way to the worker and back
  Durations recovery;         ///< of lost workers, until they are back
};

}  // namespace dist
