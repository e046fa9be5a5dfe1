/// Traces of all strategies of a job for chrome://tracing and ui.perfetto.dev, enabled by a TraceFile or by
/// DIST_TRACE=path in the environment.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <dist/core/config.hpp>

namespace dist {

/// Receives the begin and end of spans, in the threads that run them, and forwards them to a profiler as ranges. Spans
/// of a thread are nested.
class SpanListener {
 public:
  /// Begins a span in the calling thread. `number` distinguishes spans with the same name.
  virtual void begin(std::string_view name, std::int64_t number) noexcept = 0;
  /// Ends the last span that this thread began.
  virtual void end() noexcept = 0;

 protected:
  SpanListener() = default;
  /// Derived classes may be copyable.
  SpanListener(const SpanListener&) = default;
  /// Derived classes may be copyable.
  SpanListener& operator=(const SpanListener&) = default;
  ~SpanListener() = default;
};

/// A log of timed events in the threads of this process, with a fixed capacity. Recording does not block. Traceable
/// functions take a `Trace*`, at the cost of one comparison if it is null.
class Trace {
 public:
  /// An event from `begin` to `end`, in nanoseconds of the clock of `now()`.
  struct Event {
    std::array<char, 48> label{};  ///< name, cut after 47 characters and ended by a zero
    std::int64_t number = 0;       ///< distinguishes events with the same name
    std::int64_t begin = 0;        ///< start time
    std::int64_t end = 0;          ///< end time, at least `begin`
    int thread = 0;                ///< the system's thread number, or the number of a row

    /// The name, as a view of the label.
    [[nodiscard]] std::string_view name() const noexcept { return label.data(); }
  };

  /// Counts and drops events beyond `capacity`. Throws the exceptions of std::vector.
  explicit Trace(std::size_t capacity = 16384);
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  /// A number that is unique among all traces that this process has created.
  [[nodiscard]] std::uint64_t id() const noexcept { return id_; }

  /// The time of a monotonic clock that all processes of a machine share, in nanoseconds.
  [[nodiscard]] static std::int64_t now() noexcept;

  /// Records an event of the calling thread. Names are cut after 47 characters. The first event of a thread also stores
  /// the thread's name.
  [[gnu::cold]] void record(std::string_view name, std::int64_t number, std::int64_t begin, std::int64_t end) noexcept;

  /// Adds a row for events outside threads, such as a GPU queue, and returns its number. Thread-safe. Throws the
  /// exceptions of std::vector.
  [[nodiscard]] int add_row(std::string name);
  /// Records an event of a row from `add_row`.
  [[gnu::cold]] void record_on(int row, std::string_view name, std::int64_t number, std::int64_t begin,
                               std::int64_t end) noexcept;

  /// Used by TraceSpan: `begin_span` notifies the listener and returns the time, `end_span` records the event.
  [[nodiscard, gnu::cold]] std::int64_t begin_span(std::string_view name, std::int64_t number) noexcept;
  /// Records the event that began at `begin`, and notifies the listener.
  [[gnu::cold]] void end_span(std::string_view name, std::int64_t number, std::int64_t begin) noexcept;

  /// Sets the listener for all spans, or removes it if null. Call it outside spans. Returns false, and changes nothing,
  /// if there is already a listener.
  [[nodiscard]] bool set_listener(SpanListener* listener) noexcept;

  /// True if the capacity is not 0. It is 0 if only a listener is used.
  [[nodiscard]] bool keeps_events() const noexcept { return !events_.empty(); }

  /// The events in the order of recording: within a thread, by end time. Call this and the following functions only
  /// while nothing is recorded.
  [[nodiscard]] std::span<const Event> events() const noexcept;
  /// The number of events that exceeded the capacity.
  [[nodiscard]] std::size_t dropped() const noexcept;
  /// Removes all events.
  void clear() noexcept { next_.store(0, std::memory_order_relaxed); }

  /// Returns for how many nanoseconds events whose names start with `one` overlap with events whose names start with
  /// `other`, summed over all pairs.
  [[nodiscard]] std::int64_t overlap(std::string_view one, std::string_view other) const noexcept;

  /// Names this process in the trace: worker 1 has number 1, and its name may contain the host. The default is the
  /// process id, without a name.
  void name_process(std::size_t number, std::string name);

  /// Returns the events as JSON for chrome://tracing and ui.perfetto.dev, as process number `process`. Times of
  /// processes of one machine are comparable.
  [[nodiscard]] std::string chrome_json(std::size_t process = 0) const;
  /// Throws FileError.
  void write_chrome_json(const std::string& path, std::size_t process = 0) const;

  /// Creates an empty trace file for `append_to_file`. Throws FileError.
  static void clear_file(const std::string& path);
  /// Appends the events of this process to the file, under a file lock. Throws FileError.
  void append_to_file(const std::string& path) const;

 private:
  /// A thread, or a row from `add_row`.
  struct Row {
    int number;
    std::string name;
  };
  /// Greater than all thread numbers of Linux.
  static constexpr int first_added_row = 1 << 23;

  [[noreturn]] static void refuse(const std::string& path);

  void name_thread() noexcept;

  /// The JSON between the brackets.
  [[nodiscard]] std::string json_events(std::size_t process) const;

  /// Keeps the nanoseconds as decimals.
  [[nodiscard]] static std::string microseconds(std::int64_t nanoseconds);
  [[nodiscard]] static std::string quoted(std::string_view name);

  /// The id of the last trace that stored the calling thread's name.
  inline static thread_local std::uint64_t named_here = 0;
  inline static constinit std::atomic<std::uint64_t> traces_made{0};

  std::uint64_t id_ = traces_made.fetch_add(1, std::memory_order_relaxed) + 1;
  std::vector<Event> events_;
  std::atomic<std::size_t> next_{0};
  std::size_t process_;
  std::string process_name_;
  mutable std::mutex names_lock_;
  std::vector<Row> rows_;
  int added_rows_ = 0;
  std::atomic<SpanListener*> listener_{nullptr};
};

/// The name of an event, and the trace that records it, if any. `name` must outlive the event.
struct ProfilerLabel {
  Trace* trace = nullptr;      ///< null: not recorded
  std::string_view name = {};  ///< must outlive the event
  std::int64_t number = 0;     ///< distinguishes events with the same name
};

/// Records an event for the lifetime of this object. Does nothing without a trace.
class TraceSpan {
 public:
  /// Begins the event.
  explicit TraceSpan(const ProfilerLabel& label) noexcept
      : label_(label), begin_(label.trace == nullptr ? 0 : label.trace->begin_span(label.name, label.number)) {}
  TraceSpan(const TraceSpan&) = delete;
  TraceSpan& operator=(const TraceSpan&) = delete;
  ~TraceSpan() {
    if (label_.trace != nullptr) label_.trace->end_span(label_.name, label_.number, begin_);
  }

 private:
  ProfilerLabel label_;
  std::int64_t begin_;
};

namespace detail {

/// The trace to which strategies, collectives and input record; null if tracing is off.
inline constinit std::atomic<Trace*> active_trace{nullptr};

/// A label in the active trace.
[[nodiscard]] inline ProfilerLabel traced(std::string_view name, std::size_t number = 0) noexcept {
  return {active_trace.load(std::memory_order_relaxed), name, static_cast<std::int64_t>(number)};
}

}  // namespace detail

/// A line of the C++ source, for messages.
struct SourceLine {
  const char* file;  ///< path as the compiler was given it
  int line;          ///< from 1
};

/// Returns the line of the call; as a default argument, the line of the function's caller.
[[nodiscard]] constexpr SourceLine here(const char* file = __builtin_FILE(), int line = __builtin_LINE()) noexcept {
  return {file, line};
}

/// Records the work of strategies during the lifetime of this object, and then writes it to a file:
///
///     dist::TraceFile trace{"trace.json"};
///
/// There are events for each replica's part of a run, for each collective of a replica, and for the input; threads and
/// processes are named. Each replica's GPU queue has its own row, which shows when the GPU executed the runs and
/// collectives; a captured StepGraph is one event. `Default` and `OneDevice` record nothing: use TraceSpan there.
/// Processes of a job that name the same file share it. Strategies must be created after the TraceFile and destroyed
/// before it.
class TraceFile {
 public:
  /// Truncates or creates the file. Events beyond `capacity` are dropped and counted in a warning. Throws FileError if
  /// the path is not writable, WrongStrategy if another TraceFile exists.
  explicit TraceFile(std::string path, std::size_t capacity = std::size_t{1} << 18);
  TraceFile(const TraceFile&) = delete;
  TraceFile& operator=(const TraceFile&) = delete;
  ~TraceFile();

 private:
  std::string path_;
  Trace trace_;
};

namespace detail {

/// Starts the trace requested by DIST_TRACE, once per process. It is written when the process exits normally.
void trace_as_the_environment_asks();

/// Names this process in the active trace.
void name_traced_process(std::size_t number, std::string name);

}  // namespace detail

}  // namespace dist

#ifndef DIST_COMPILED
#include <dist/core/trace.ipp>
#endif
