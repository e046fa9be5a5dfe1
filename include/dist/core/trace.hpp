#pragma once

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dist/core/algorithms.hpp>
#include <dist/core/duration.hpp>
#include <dist/core/error.hpp>
#include <dist/core/text.hpp>
#include <dist/core/thread_name.hpp>

namespace dist {

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
    int thread = 0;  ///< the system's number of it

    [[nodiscard]] std::string_view name() const noexcept { return label.data(); }
  };

  /// Events beyond `capacity` are counted and dropped. Throws what std::vector throws.
  explicit Trace(std::size_t capacity = 16384) : events_(capacity) {}
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  /// The time of a clock that never goes back and that all processes of a machine share.
  [[nodiscard]] static std::int64_t now() noexcept {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }

  /// Names of more than 47 characters are cut. The thread's name, as the system knows it, is kept with its first event.
  [[gnu::noinline, gnu::cold]] void record(std::string_view name, std::int64_t number, std::int64_t begin,
                                           std::int64_t end) noexcept {
    if (named_here != id_) name_thread();
    const std::size_t place = next_.fetch_add(1, std::memory_order_relaxed);
    if (place >= events_.size()) return;
    Event& event = events_[place];
    event.label = {};
    name.copy(event.label.data(), event.label.size() - 1);
    event.number = number;
    event.begin = begin;
    event.end = end;
    event.thread = static_cast<int>(gettid());
  }

  /// In the order of recording: within a thread, that of their ends. Call it while nobody records, like all that
  /// follows.
  [[nodiscard]] std::span<const Event> events() const noexcept {
    return {events_.data(), std::min(next_.load(std::memory_order_relaxed), events_.size())};
  }
  [[nodiscard]] std::size_t dropped() const noexcept { return next_.load(std::memory_order_relaxed) - events().size(); }
  void clear() noexcept { next_.store(0, std::memory_order_relaxed); }

  /// For how many nanoseconds events whose names start with `one` and with `other` went on at the same time, added up
  /// over all pairs of them.
  [[nodiscard]] std::int64_t overlap(std::string_view one, std::string_view other) const noexcept {
    std::int64_t together = 0;
    for (const Event& first : events()) {
      if (!first.name().starts_with(one)) continue;
      for (const Event& second : events())
        if (second.name().starts_with(other))
          together += std::max<std::int64_t>(0, std::min(first.end, second.end) - std::max(first.begin, second.begin));
    }
    return together;
  }

  /// What the trace calls this process: worker 1 is number 1, its name may say on which host. Without a call it has the
  /// system's number and no name.
  void name_process(std::size_t number, std::string name) {
    process_ = number;
    process_name_ = std::move(name);
  }

  /// The events as JSON that chrome://tracing and ui.perfetto.dev show, as those of process number `process`. The times
  /// of processes of one machine fit together.
  [[nodiscard]] std::string chrome_json(std::size_t process = 0) const {
    const std::string events = json_events(process);
    return text(json_begin, events.empty() ? "" : "\n", events, json_end);
  }
  /// Writes that to a file. Throws FileError.
  void write_chrome_json(const std::string& path, std::size_t process = 0) const {
    const std::string json = chrome_json(process);
    std::FILE* const file = std::fopen(path.c_str(), "wb");
    bool written = file != nullptr && std::fwrite(json.data(), 1, json.size(), file) == json.size();
    if (file != nullptr) written = std::fclose(file) == 0 && written;
    if (!written) refuse(path);
  }

  /// Makes a file without events that `append_to_file` can add to. Throws FileError.
  static void clear_file(const std::string& path) {
    const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (file < 0) refuse(path);
    close(file);
  }
  /// Adds the events of this process to those that other processes have written to the file, whose lock keeps them
  /// apart. Throws FileError.
  void append_to_file(const std::string& path) const {
    const int file = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (file < 0) refuse(path);
    const std::string events = json_events(process_);
    struct stat state {};
    const auto put = [&](std::string_view bytes) {
      while (!bytes.empty()) {
        const ssize_t size = write(file, bytes.data(), bytes.size());
        if (size < 0 && errno != EINTR) return false;
        if (size > 0) bytes.remove_prefix(static_cast<std::size_t>(size));
      }
      return true;
    };
    constexpr auto without_events = static_cast<off_t>(json_begin.size() + json_end.size());
    bool written = flock(file, LOCK_EX) == 0 && fstat(file, &state) == 0;
    if (written && state.st_size == 0) written = put(json_begin);
    if (written && state.st_size != 0) written = lseek(file, -static_cast<off_t>(json_end.size()), SEEK_END) >= 0;
    if (written && !events.empty()) written = put(state.st_size > without_events ? ",\n" : "\n") && put(events);
    written = written && put(json_end);
    const int problem = errno;
    close(file);
    errno = problem;
    if (!written) refuse(path);
  }

 private:
  static constexpr std::string_view json_begin = "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[";
  static constexpr std::string_view json_end = "\n]}\n";

  struct NamedThread {
    int thread;
    detail::ThreadName name;
  };

  [[noreturn]] static void refuse(const std::string& path) {
    throw FileError(path, "A trace could not be written", std::strerror(errno),
                    "Give a path in a folder that exists, with room for it");
  }

  void name_thread() noexcept {
    named_here = id_;
    const std::lock_guard lock{names_lock_};
    try {
      threads_.push_back({static_cast<int>(gettid()), detail::name_of_this_thread()});
    } catch (...) {
      // It stays without a name.
    }
  }

  /// What stands between the brackets.
  [[nodiscard]] std::string json_events(std::size_t process) const {
    std::string json;
    const auto add = [&](const auto&... parts) { json += text(json.empty() ? "" : ",\n", parts...); };
    if (!process_name_.empty())
      add("{\"ph\":\"M\",\"pid\":", process, ",\"name\":\"process_name\",\"args\":{\"name\":\"", quoted(process_name_),
          "\"}}");
    {
      const std::lock_guard lock{names_lock_};
      for (const NamedThread& each : threads_)
        add("{\"ph\":\"M\",\"pid\":", process, ",\"tid\":", each.thread,
            ",\"name\":\"thread_name\",\"args\":{\"name\":\"", quoted(each.name.data()), "\"}}");
    }
    for (const Event& event : events())
      add("{\"ph\":\"X\",\"pid\":", process, ",\"tid\":", event.thread, ",\"ts\":", microseconds(event.begin),
          ",\"dur\":", microseconds(event.end - event.begin), ",\"name\":\"", quoted(event.name()),
          "\",\"args\":{\"number\":", event.number, "}}");
    return json;
  }

  /// With the nanoseconds as decimals.
  [[nodiscard]] static std::string microseconds(std::int64_t nanoseconds) {
    std::string decimals = text(nanoseconds % 1000);
    decimals.insert(0, 3 - decimals.size(), '0');
    return text(nanoseconds / 1000, ".", decimals);
  }
  [[nodiscard]] static std::string quoted(std::string_view name) {
    std::string safe;
    for (const char letter : name) {
      if (letter == '"' || letter == '\\') safe += '\\';
      safe += static_cast<unsigned char>(letter) < 0x20 ? ' ' : letter;
    }
    return safe;
  }

  /// Which trace knows the calling thread's name.
  inline static thread_local std::uint64_t named_here = 0;
  inline static constinit std::atomic<std::uint64_t> traces_made{0};

  std::uint64_t id_ = traces_made.fetch_add(1, std::memory_order_relaxed) + 1;
  std::vector<Event> events_;
  std::atomic<std::size_t> next_{0};
  std::size_t process_ = static_cast<std::size_t>(getpid());
  std::string process_name_;
  mutable std::mutex names_lock_;
  std::vector<NamedThread> threads_;
};

/// What something is called in a trace, if there is one. `name` must live until it has ended.
struct TraceLabel {
  Trace* trace = nullptr;
  std::string_view name = {};
  std::int64_t number = 0;
};

/// Records that something goes on while this object lives; without a trace, nothing.
class TraceSpan {
 public:
  explicit TraceSpan(const TraceLabel& label) noexcept
      : label_(label), begin_(label.trace == nullptr ? 0 : Trace::now()) {}
  TraceSpan(const TraceSpan&) = delete;
  TraceSpan& operator=(const TraceSpan&) = delete;
  ~TraceSpan() {
    if (label_.trace != nullptr) label_.trace->record(label_.name, label_.number, begin_, Trace::now());
  }

 private:
  TraceLabel label_;
  std::int64_t begin_;
};

}  // namespace dist
