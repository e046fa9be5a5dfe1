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
#include <dist/device/cuda/event.hpp>
#include <dist/device/cuda/stream.hpp>
#include <dist/device/cuda/wait.hpp>

namespace dist::cuda {

/// When work of a stream ran: spans of it, which lie within each other, become events in a row of a trace. The GPU notes
/// both ends of a span in timed events, and the host reads them once they are over. The times are those of the trace's
/// clock: the host notes when a timed event of the same GPU was over, the anchor, from which the GPU measures. They are as
/// exact as that is, some microseconds. One thread at a time.
class WorkTimes {
 public:
  /// The host waits for the anchor so long, and for no other work: it is on a stream of its own. `row` is what the trace
  /// calls the stream. Throws CudaError, DeadlineExceeded.
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

  /// Whether it records to `trace`, which may have taken the place of one that has ended.
  [[nodiscard]] bool records_to(const Trace* trace) const noexcept {
    return trace != nullptr && trace->id() == trace_id_;
  }

  /// A span begins with what is put on the stream from now on. Throws CudaError, and what std::vector throws.
  void begin(std::string_view name, std::int64_t number) {
    Span span{std::string{name}, number, unused_event(), unused_event()};
    open_.reserve(open_.size() + 1);
    ended_.reserve(ended_.size() + open_.size() + 1);  // so that `end` needs no memory
    span.begin.record(stream_);
    open_.push_back(std::move(span));
  }
  /// The last span that began ends with what was put on the stream until now. One whose end the GPU does not take is
  /// forgotten: it says why in the next call that matters.
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

  /// Records the spans that are over, without waiting for others.
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
      // The GPU's clock is not quite as fast as the host's, and a time that was long ago is less exact.
      if (ended_.empty() && open_.empty() && Trace::now() - anchor_time_ > anchor_age.count()) set_anchor();
    } catch (const std::exception&) {
      ended_.clear();  // the GPU is lost, or the memory
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

  /// Of some events that of which the host knows best when it was over.
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
