#pragma once

#include <concepts>
#include <cstdint>
#include <exception>

#include <dist/core/trace.hpp>

namespace dist {

/// Queues whose copies to host spans arrive in a later wait: `copies()` is the total number of copies, and
/// `drop_copies(since)` cancels those with numbers from `since` on, except Pending values.
template <class Q>
concept DelaysCopies = requires(const Q queue, std::uint64_t since) {
  { queue.copies() }
  noexcept->std::same_as<std::uint64_t>;
  { queue.drop_copies(since) }
  noexcept;
};

/// Tracks the copies to host spans that are submitted to a queue during its lifetime. If an exception ends the scope,
/// it cancels them, because the spans may be destroyed before the next wait.
template <class Queue>
class CopiesOfScope {
 public:
  /// Does nothing: copies to host spans are complete when they return.
  explicit CopiesOfScope(const Queue&) noexcept {}
  CopiesOfScope(const CopiesOfScope&) = delete;
  CopiesOfScope& operator=(const CopiesOfScope&) = delete;
};

/// Cancels the pending copies of the scope on an exception.
template <DelaysCopies Queue>
class CopiesOfScope<Queue> {
 public:
  /// Tracks copies from now on.
  explicit CopiesOfScope(const Queue& queue) noexcept : queue_(queue), since_(queue.copies()) {}
  CopiesOfScope(const CopiesOfScope&) = delete;
  CopiesOfScope& operator=(const CopiesOfScope&) = delete;
  ~CopiesOfScope() {
    if (std::uncaught_exceptions() > exceptions_) queue_.drop_copies(since_);
  }

 private:
  Queue queue_;
  std::uint64_t since_;
  int exceptions_ = std::uncaught_exceptions();
};

/// Queues that measure when their work ran. Work between `begin_timing(label)` and `end_timing()`, which nest, becomes
/// an event in the label's trace, at the latest after the next wait of the host. If `begin_timing` returns false,
/// nothing is recorded and `end_timing` must not be called. Neither waits.
template <class Q>
concept TimesWork = requires(const Q queue, const ProfilerLabel& label) {
  { queue.begin_timing(label) }
  noexcept->std::same_as<bool>;
  { queue.end_timing() }
  noexcept;
};

/// Records when the work submitted to a queue during its lifetime runs, if the queue supports timing and the trace
/// keeps events. TraceSpan records the host's time instead.
template <class Queue>
class ProfilerRange {
 public:
  /// Does nothing: the queue does not measure its work.
  ProfilerRange(const ProfilerLabel&, const Queue&) noexcept {}
  ProfilerRange(const ProfilerRange&) = delete;
  ProfilerRange& operator=(const ProfilerRange&) = delete;
};

/// Records when the work submitted during its lifetime runs.
template <TimesWork Queue>
class ProfilerRange<Queue> {
 public:
  /// Starts to measure `queue`, whose events have the name of `label`.
  ProfilerRange(const ProfilerLabel& label, const Queue& queue) noexcept
      : queue_(queue), is_timed_(label.trace != nullptr && label.trace->keeps_events() && queue.begin_timing(label)) {}
  ProfilerRange(const ProfilerRange&) = delete;
  ProfilerRange& operator=(const ProfilerRange&) = delete;
  ~ProfilerRange() {
    if (is_timed_) queue_.end_timing();
  }

 private:
  Queue queue_;
  bool is_timed_;
};

}  // namespace dist
