#pragma once

#include <concepts>

#include <dist/core/trace.hpp>

namespace dist {

/// Queues of devices that say when their work ran. Between `begin_timing(label)` and `end_timing()`, which nest, what is put
/// there is an event in the label's trace, once it is over and the host has waited for the queue, or before.
/// `begin_timing` returns false where there will be none, and has no end then; the host waits for no work in either.
template <class Q>
concept TimesWork = requires(const Q queue, const ProfilerLabel& label) {
  { queue.begin_timing(label) }
  noexcept->std::same_as<bool>;
  { queue.end_timing() }
  noexcept;
};

/// Records when the work runs that is put on a queue while this object lives, where the queue's device says it; without a
/// trace that keeps events, nothing. What the host does meanwhile is a TraceSpan.
template <class Queue>
class ProfilerRange {
 public:
  ProfilerRange(const ProfilerLabel&, const Queue&) noexcept {}
  ProfilerRange(const ProfilerRange&) = delete;
  ProfilerRange& operator=(const ProfilerRange&) = delete;
};

template <TimesWork Queue>
class ProfilerRange<Queue> {
 public:
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
