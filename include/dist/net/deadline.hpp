#pragma once

#include <dist/core/algorithms.hpp>
#include <dist/core/duration.hpp>
#include <dist/core/text.hpp>

namespace dist::net {

/// The unit of deadlines.
using Milliseconds = std::chrono::milliseconds;

/// After this wait, a process prints once what it is waiting for.
inline constexpr Milliseconds default_patience{10'000};

/// A point in time on a monotonic clock.
class Deadline {
 public:
  /// The clock: it never jumps.
  using Clock = std::chrono::steady_clock;

  /// Returns the deadline `wait` from now; at most ten years.
  [[nodiscard]] static Deadline in(Milliseconds wait) {
    return Deadline{Clock::now() + std::min(wait, Milliseconds{std::chrono::hours{24 * 3650}})};
  }

  /// True from the deadline on.
  [[nodiscard]] bool passed() const { return Clock::now() >= at_; }
  /// Returns the remaining time, at least 0, rounded up.
  [[nodiscard]] Milliseconds left() const {
    return std::max(Milliseconds{0}, std::chrono::ceil<Milliseconds>(at_ - Clock::now()));
  }
  /// For `poll`: until the deadline, but at most `longest`.
  [[nodiscard]] int poll_timeout(Milliseconds longest = Milliseconds{1000}) const {
    return static_cast<int>(std::min(left(), longest).count());
  }
  /// Returns the earlier one of both deadlines.
  [[nodiscard]] Deadline sooner(Deadline other) const { return Deadline{std::min(at_, other.at_)}; }
  /// Returns this deadline, postponed by `wait`.
  [[nodiscard]] Deadline later(Milliseconds wait) const { return Deadline{at_ + wait}; }

 private:
  explicit Deadline(Clock::time_point at) : at_(at) {}

  Clock::time_point at_;
};

}  // namespace dist::net
