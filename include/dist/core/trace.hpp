/// A file of what all strategies of a job do, for chrome://tracing and ui.perfetto.dev: by one line in the program, or
/// without one by DIST_TRACE=path in the environment.
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

/// Is told when spans begin and end, in the threads that they are of: it makes them ranges of a profiler. Spans of a thread
/// lie within each other.
class SpanListener {
 public:
  virtual void begin(std::string_view name, std::int64_t number) noexcept = 0;
  /// Of the last span that this thread began.
  virtual void end() noexcept = 0;

 protected:
  SpanListener() = default;
  SpanListener(const SpanListener&) = default;
  SpanListener& operator=(const SpanListener&) = default;
  ~SpanListener() = default;
};

/// What the threads of this process did, and when: a fixed number of events, which any thread
/// records without waiting. What can be traced takes a `Trace*`, and costs one comparison where that is null.
class Trace {
 public:
  /// From `begin` to `end`, in nanoseconds of the clock of `now()`.
  struct Event {
    std::array<char, 48> label{};
    std::int64_t number = 0;  ///< which of several things of that name
    std::int64_t begin = 0;
    std::int64_t end = 0;
    int thread = 0;  ///< the system's number of it, or the number of a row

    [[nodiscard]] std::string_view name() const noexcept { return label.data(); }
  };

  /// Events beyond `capacity` are counted and dropped. Throws what std::vector throws.
  explicit Trace(std::size_t capacity = 16384);
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  /// No other trace of this process has or had it.
  [[nodiscard]] std::uint64_t id() const noexcept { return id_; }

  /// The time of a clock that never goes back and that all processes of a machine share.
  [[nodiscard]] static std::int64_t now() noexcept;

  /// Names of more than 47 characters are cut. The thread's name, as the system knows it, is kept with its first event.
  [[gnu::cold]] void record(std::string_view name, std::int64_t number, std::int64_t begin, std::int64_t end) noexcept;

  /// The number of a new row for events of something that is no thread, such as a queue of a GPU. Thread-safe. Throws what
  /// std::vector throws.
  [[nodiscard]] int add_row(std::string name);
  /// The same as `record` for a row.
  [[gnu::cold]] void record_on(int row, std::string_view name, std::int64_t number, std::int64_t begin,
                               std::int64_t end) noexcept;

  /// What a TraceSpan does: the time at which it begins, of which the listener is told, and the event once it has ended.
  [[nodiscard, gnu::cold]] std::int64_t begin_span(std::string_view name, std::int64_t number) noexcept;
  [[gnu::cold]] void end_span(std::string_view name, std::int64_t number, std::int64_t begin) noexcept;

  /// Lets `listener` know of all spans, until it is taken away by null. Call it while no span goes on. Returns false, and
  /// changes nothing, where there is one already.
  [[nodiscard]] bool set_listener(SpanListener* listener) noexcept;

  /// Whether there is room for any, as there is none where only a listener is of interest.
  [[nodiscard]] bool keeps_events() const noexcept { return !events_.empty(); }

  /// In the order of recording: within a thread, that of their ends. Call it while nobody records, like all that
  /// follows.
  [[nodiscard]] std::span<const Event> events() const noexcept;
  [[nodiscard]] std::size_t dropped() const noexcept;
  void clear() noexcept { next_.store(0, std::memory_order_relaxed); }

  /// For how many nanoseconds events whose names start with `one` and with `other` went on at the same time, added up
  /// over all pairs of them.
  [[nodiscard]] std::int64_t overlap(std::string_view one, std::string_view other) const noexcept;

  /// What the trace calls this process: worker 1 is number 1, its name may say on which host. Without a call it has the
  /// system's number and no name.
  void name_process(std::size_t number, std::string name);

  /// The events as JSON that chrome://tracing and ui.perfetto.dev show, as those of process number `process`. The times
  /// of processes of one machine fit together.
  [[nodiscard]] std::string chrome_json(std::size_t process = 0) const;
  /// Writes that to a file. Throws FileError.
  void write_chrome_json(const std::string& path, std::size_t process = 0) const;

  /// Makes a file without events that `append_to_file` can add to. Throws FileError.
  static void clear_file(const std::string& path);
  /// Adds the events of this process to those that other processes have written to the file, whose lock keeps them
  /// apart. Throws FileError.
  void append_to_file(const std::string& path) const;

 private:
  /// A thread, or what `add_row` has made.
  struct Row {
    int number;
    std::string name;
  };
  /// No thread of Linux has this number or a greater one.
  static constexpr int first_added_row = 1 << 23;

  [[noreturn]] static void refuse(const std::string& path);

  void name_thread() noexcept;

  /// What stands between the brackets.
  [[nodiscard]] std::string json_events(std::size_t process) const;

  /// With the nanoseconds as decimals.
  [[nodiscard]] static std::string microseconds(std::int64_t nanoseconds);
  [[nodiscard]] static std::string quoted(std::string_view name);

  /// Which trace knows the calling thread's name.
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

/// What something is called in a trace, if there is one. `name` must live until it has ended.
struct ProfilerLabel {
  Trace* trace = nullptr;
  std::string_view name = {};
  std::int64_t number = 0;
};

/// Records that something goes on while this object lives; without a trace, nothing.
class TraceSpan {
 public:
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

/// What strategies, collectives and input record to; null while nobody asked for a trace.
inline constinit std::atomic<Trace*> active_trace{nullptr};

/// A label in the active trace.
[[nodiscard]] inline ProfilerLabel traced(std::string_view name, std::size_t number = 0) noexcept {
  return {active_trace.load(std::memory_order_relaxed), name, static_cast<std::int64_t>(number)};
}

}  // namespace detail

/// A line of the C++ source, for messages.
struct SourceLine {
  const char* file;
  int line;
};

/// The line of the call; as a default argument, that of the function's caller.
[[nodiscard]] constexpr SourceLine here(const char* file = __builtin_FILE(), int line = __builtin_LINE()) noexcept {
  return {file, line};
}

/// Records what strategies do from here to the end of this object's life, and then writes it to a file:
///
///     dist::TraceFile trace{"trace.json"};
///
/// There are events for each replica's part of a run, for each collective of a replica, and for the input; threads and
/// processes have names. A replica's queue on a GPU has a row of its own, which shows when the GPU did the work of these
/// runs and collectives; what a StepGraph captures is one event there. `Default` and `OneDevice` record nothing, as they
/// are the plain loop: use a TraceSpan there. The processes of a job that name the same file write one file together.
/// Strategies that it is to see are made after it and end before it.
class TraceFile {
 public:
  /// Empties the file, if there is one. Events beyond `capacity` are dropped, and a warning counts them. Throws
  /// FileError for a path that cannot be written, WrongStrategy while another TraceFile lives.
  explicit TraceFile(std::string path, std::size_t capacity = std::size_t{1} << 18);
  TraceFile(const TraceFile&) = delete;
  TraceFile& operator=(const TraceFile&) = delete;
  ~TraceFile();

 private:
  std::string path_;
  Trace trace_;
};

namespace detail {

/// Starts the trace that DIST_TRACE asks for, once in a process; it is written when the process ends in order.
void trace_as_the_environment_asks();

/// Names this process in the active trace.
void name_traced_process(std::size_t number, std::string name);

}  // namespace detail

}  // namespace dist

#ifndef DIST_COMPILED
#include <dist/core/trace.ipp>
#endif
