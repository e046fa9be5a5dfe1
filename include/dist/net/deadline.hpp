#pragma once

#include <string>

#include <dist/core/algorithms.hpp>
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
  [[nodiscard]] static Deadline in(Milliseconds wait) {
    return Deadline{Clock::now() + std::min(wait, Milliseconds{std::chrono::hours{24 * 3650}})};
  }

  [[nodiscard]] bool passed() const { return Clock::now() >= at_; }
  /// Not negative, and rounded up: after a sleep of that length the deadline has passed.
  [[nodiscard]] Milliseconds left() const {
    return std::max(Milliseconds{0}, std::chrono::ceil<Milliseconds>(at_ - Clock::now()));
  }
  /// For `poll`: until the deadline, but at most `longest`.
  [[nodiscard]] int poll_timeout(Milliseconds longest = Milliseconds{1000}) const {
    return static_cast<int>(std::min(left(), longest).count());
  }
  [[nodiscard]] Deadline sooner(Deadline other) const { return Deadline{std::min(at_, other.at_)}; }
  [[nodiscard]] Deadline later(Milliseconds wait) const { return Deadline{at_ + wait}; }

 private:
  explicit Deadline(Clock::time_point at) : at_(at) {}

  Clock::time_point at_;
};

/// "120 s" or "0.25 s".
[[nodiscard]] std::string seconds(Milliseconds wait);

}  // namespace dist::net

#ifndef DIST_COMPILED
#include <dist/net/deadline.ipp>
#endif
