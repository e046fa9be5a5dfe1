#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dist/core/duration.hpp>
#include <dist/core/error.hpp>
#include <dist/core/text.hpp>
#include <dist/core/trace.hpp>
#include <dist/device/cuda/api.hpp>
#include <dist/device/cuda/stream.hpp>
#include <dist/device/cuda/wait.hpp>

namespace dist::cuda {

/// Measures the work of a stream: nested spans become events in a row of a trace. The GPU records both ends of a span
/// as timed events, which the host reads once they are over. The clocks are related by an anchor event, which limits
/// the accuracy to some microseconds. Not thread-safe.
class WorkTimes {
 public:
  /// Waits for the anchor, which has a separate stream, at most `timeout`. `row` is the stream's name in the trace.
  /// Throws CudaError, DeadlineExceeded.
  WorkTimes(Trace& trace, StreamRef stream, std::string row, std::chrono::nanoseconds timeout = longest_wait)
      : trace_(&trace),
        trace_id_(trace.id()),
        stream_(stream),
        timeout_(timeout),
        of_anchor_(stream.device()),
        anchor_(stream.device()) {
    set_anchor();
    row_ = trace.add_row(std::move(row));
  }

  /// True if it records to `trace`, which may have replaced an earlier trace.
  [[nodiscard]] bool records_to(const Trace* trace) const noexcept {
    return trace != nullptr && trace->id() == trace_id_;
  }

  /// Begins a span with the next work on the stream. Throws CudaError, and the exceptions of std::vector.
  void begin(std::string_view name, std::int64_t number) {
    Span span{std::string{name}, number, unused_event(), unused_event()};
    open_.reserve(open_.size() + 1);
    ended_.reserve(ended_.size() + open_.size() + 1);  // so that `end` does not allocate
    span.begin.record(stream_);
    open_.push_back(std::move(span));
  }
  /// Ends the innermost span after all earlier work. Drops the span if the GPU reports an error, which the next checked
  /// call reports.
  void end() noexcept {
    Span span = std::move(open_.back());
    open_.pop_back();
    try {
      span.end.record(stream_);
    } catch (const Error&) {
      return;
    }
    ended_.push_back(std::move(span));
    harvest();
  }

  /// Records completed spans without waiting for others.
  void harvest() noexcept {
    std::size_t over = 0;
    try {
      for (; over < ended_.size() && ended_[over].end.is_over(); ++over) {
        Span& span = ended_[over];
        trace_->record_on(row_, span.name, span.number, time_of(span.begin), time_of(span.end));
        unused_.reserve(unused_.size() + 2);
        unused_.push_back(std::move(span.begin));
        unused_.push_back(std::move(span.end));
      }
      ended_.erase(ended_.begin(), ended_.begin() + static_cast<std::ptrdiff_t>(over));
      // Clocks of GPU and host drift, so an old anchor is inaccurate.
      if (ended_.empty() && open_.empty() && Trace::now() - anchor_time_ > anchor_age.count()) set_anchor();
    } catch (const std::exception&) {
      ended_.clear();  // the GPU failed, or memory is exhausted
    }
  }

 private:
  struct Span {
    std::string name;
    std::int64_t number;
    TimedEvent begin, end;
  };

  static constexpr std::chrono::nanoseconds anchor_age = std::chrono::seconds{1};

  [[nodiscard]] TimedEvent unused_event() {
    if (unused_.empty()) return TimedEvent{stream_.device()};
    TimedEvent event = std::move(unused_.back());
    unused_.pop_back();
    return event;
  }

  /// Chooses the most accurately observed of several events.
  void set_anchor() {
    std::int64_t least = std::numeric_limits<std::int64_t>::max();
    for (int look = 0; look < 3; ++look) {
      TimedEvent event = unused_event();
      const std::int64_t before = Trace::now();
      event.record(of_anchor_.ref());
      await([&] { return event.is_over(); }, [&] { return concat("an event of GPU ", stream_.device()); }, timeout_);
      const std::int64_t doubt = Trace::now() - before;
      if (doubt < least) {
        std::swap(anchor_, event);
        anchor_time_ = before + doubt / 2;
        least = doubt;
      }
      unused_.push_back(std::move(event));
    }
  }
  [[nodiscard]] std::int64_t time_of(const TimedEvent& event) const {
    return anchor_time_ + event.since(anchor_).count();
  }

  Trace* trace_;
  std::uint64_t trace_id_;
  StreamRef stream_;
  std::chrono::nanoseconds timeout_;
  Stream of_anchor_;
  TimedEvent anchor_;
  std::int64_t anchor_time_ = 0;
  int row_ = 0;
  std::vector<Span> open_, ended_;
  std::vector<TimedEvent> unused_;
};

}  // namespace dist::cuda
