#pragma once

#include <string>

#include <dist/core/config.hpp>
#include <dist/core/duration.hpp>

namespace dist::net {

using Milliseconds = std::chrono::milliseconds;

/// A process that waits so long says on stderr for whom, once.
inline constexpr Milliseconds default_patience{10'000};

/// A point of time, on a clock that never goes back, after which waits end.
class Deadline {
 public:
  using Clock = std::chrono::steady_clock;

  /// `wait` from now; what is longer than ten years is ten years.
  [[nodiscard]] static Deadline in(Milliseconds wait);

  [[nodiscard]] bool passed() const;
  /// Not negative, and rounded up: after a sleep of that length the deadline has passed.
  [[nodiscard]] Milliseconds left() const;
  /// For `poll`: until the deadline, but at most `longest`.
  [[nodiscard]] int poll_timeout(Milliseconds longest = Milliseconds{1000}) const;
  [[nodiscard]] Deadline sooner(Deadline other) const;
  [[nodiscard]] Deadline later(Milliseconds wait) const;

 private:
  explicit Deadline(Clock::time_point at) : at_(at) {}

  Clock::time_point at_;
};

}  // namespace dist::net

#ifndef DIST_COMPILED
#include <dist/net/deadline.ipp>
#endif
