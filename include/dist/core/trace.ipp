#pragma once

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <optional>
#include <utility>

#include <dist/core/algorithms.hpp>
#include <dist/core/duration.hpp>
#include <dist/core/error.hpp>
#include <dist/core/log.hpp>
#include <dist/core/standard_descriptors.hpp>
#include <dist/core/text.hpp>
#include <dist/core/thread_name.hpp>
#include <dist/core/trace.hpp>

namespace dist {

namespace detail {

inline constexpr std::string_view json_begin = "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[";
inline constexpr std::string_view json_end = "\n]}\n";

}  // namespace detail

DIST_INLINE Trace::Trace(std::size_t capacity) : events_(capacity), process_(static_cast<std::size_t>(getpid())) {}

DIST_INLINE std::int64_t Trace::now() noexcept {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

DIST_INLINE std::span<const Trace::Event> Trace::events() const noexcept {
  return {events_.data(), std::min(next_.load(std::memory_order_relaxed), events_.size())};
}

DIST_INLINE std::size_t Trace::dropped() const noexcept {
  return next_.load(std::memory_order_relaxed) - events().size();
}

DIST_INLINE void Trace::record(std::string_view name, std::int64_t number, std::int64_t begin,
                               std::int64_t end) noexcept {
  if (named_here != id_) name_thread();
  record_on(static_cast<int>(gettid()), name, number, begin, end);
}

DIST_INLINE int Trace::add_row(std::string name) {
  const std::lock_guard lock{names_lock_};
  const int number = first_added_row + added_rows_;
  rows_.push_back({number, std::move(name)});
  ++added_rows_;
  return number;
}

DIST_INLINE void Trace::record_on(int row, std::string_view name, std::int64_t number, std::int64_t begin,
                                  std::int64_t end) noexcept {
  const std::size_t place = next_.fetch_add(1, std::memory_order_relaxed);
  if (place >= events_.size()) return;
  Event& event = events_[place];
  event.label = {};
  name.copy(event.label.data(), event.label.size() - 1);
  event.number = number;
  event.begin = begin;
  event.end = end;
  event.thread = row;
}

DIST_INLINE std::int64_t Trace::begin_span(std::string_view name, std::int64_t number) noexcept {
  if (SpanListener* const listener = listener_.load(std::memory_order_acquire)) listener->begin(name, number);
  return now();
}

DIST_INLINE void Trace::end_span(std::string_view name, std::int64_t number, std::int64_t begin) noexcept {
  record(name, number, begin, now());
  if (SpanListener* const listener = listener_.load(std::memory_order_acquire)) listener->end();
}

DIST_INLINE bool Trace::set_listener(SpanListener* listener) noexcept {
  SpanListener* none = nullptr;
  if (listener != nullptr) return listener_.compare_exchange_strong(none, listener);
  listener_.store(nullptr);
  return true;
}

DIST_INLINE std::int64_t Trace::overlap(std::string_view one, std::string_view other) const noexcept {
  std::int64_t together = 0;
  for (const Event& first : events()) {
    if (!first.name().starts_with(one)) continue;
    for (const Event& second : events())
      if (second.name().starts_with(other))
        together += std::max<std::int64_t>(0, std::min(first.end, second.end) - std::max(first.begin, second.begin));
  }
  return together;
}

DIST_INLINE void Trace::name_process(std::size_t number, std::string name) {
  process_ = number;
  process_name_ = std::move(name);
}

DIST_INLINE std::string Trace::chrome_json(std::size_t process) const {
  const std::string events = json_events(process);
  return concat(detail::json_begin, events.empty() ? "" : "\n", events, detail::json_end);
}

DIST_INLINE void Trace::write_chrome_json(const std::string& path, std::size_t process) const {
  const std::string json = chrome_json(process);
  fill_standard_descriptors();
  std::FILE* const file = std::fopen(path.c_str(), "wb");
  bool written = file != nullptr && std::fwrite(json.data(), 1, json.size(), file) == json.size();
  if (file != nullptr) written = std::fclose(file) == 0 && written;
  if (!written) refuse(path);
}

DIST_INLINE void Trace::clear_file(const std::string& path) {
  const int file = detail::above_standard(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (file < 0) refuse(path);
  close(file);
}

DIST_INLINE void Trace::append_to_file(const std::string& path) const {
  const int file = detail::above_standard(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
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
  constexpr auto without_events = static_cast<off_t>(detail::json_begin.size() + detail::json_end.size());
  bool written = flock(file, LOCK_EX) == 0 && fstat(file, &state) == 0;
  if (written && state.st_size == 0) written = put(detail::json_begin);
  if (written && state.st_size != 0) written = lseek(file, -static_cast<off_t>(detail::json_end.size()), SEEK_END) >= 0;
  if (written && !events.empty()) written = put(state.st_size > without_events ? ",\n" : "\n") && put(events);
  written = written && put(detail::json_end);
  const int problem = errno;
  close(file);
  errno = problem;
  if (!written) refuse(path);
}

DIST_COLD void Trace::refuse(const std::string& path) {
  throw FileError(path, "could not be written as a trace", std::strerror(errno),
                  "Give a path in an existing folder with enough free space");
}

DIST_COLD void Trace::name_thread() noexcept {
  named_here = id_;
  const std::lock_guard lock{names_lock_};
  try {
    rows_.push_back({static_cast<int>(gettid()), detail::name_of_this_thread().data()});
  } catch (...) {
    // The row stays unnamed.
  }
}

DIST_INLINE std::string Trace::json_events(std::size_t process) const {
  std::string json;
  const auto add = [&](const auto&... parts) { json += concat(json.empty() ? "" : ",\n", parts...); };
  if (!process_name_.empty())
    add("{\"ph\":\"M\",\"pid\":", process, ",\"name\":\"process_name\",\"args\":{\"name\":\"", quoted(process_name_),
        "\"}}");
  {
    const std::lock_guard lock{names_lock_};
    for (const Row& each : rows_)
      add("{\"ph\":\"M\",\"pid\":", process, ",\"tid\":", each.number,
          ",\"name\":\"thread_name\",\"args\":{\"name\":\"", quoted(each.name), "\"}}");
  }
  for (const Event& event : events())
    add("{\"ph\":\"X\",\"pid\":", process, ",\"tid\":", event.thread, ",\"ts\":", microseconds(event.begin),
        ",\"dur\":", microseconds(event.end - event.begin), ",\"name\":\"", quoted(event.name()),
        "\",\"args\":{\"number\":", event.number, "}}");
  return json;
}

DIST_INLINE std::string Trace::microseconds(std::int64_t nanoseconds) {
  std::string decimals = concat(nanoseconds % 1000);
  decimals.insert(0, 3 - decimals.size(), '0');
  return concat(nanoseconds / 1000, ".", decimals);
}

DIST_INLINE std::string Trace::quoted(std::string_view name) {
  std::string safe;
  for (const char letter : name) {
    if (letter == '"' || letter == '\\') safe += '\\';
    safe += static_cast<unsigned char>(letter) < 0x20 ? ' ' : letter;
  }
  return safe;
}

DIST_INLINE TraceFile::TraceFile(std::string path, std::size_t capacity) : path_(std::move(path)), trace_(capacity) {
  Trace* none = nullptr;
  if (!detail::active_trace.compare_exchange_strong(none, &trace_))
    throw WrongStrategy("A second trace was requested",
                        "a TraceFile exists already, DIST_TRACE is set, or NvtxRanges exist without a trace",
                        "End the first trace before, and create NvtxRanges after the TraceFile");
  try {
    Trace::clear_file(path_);
  } catch (...) {
    detail::active_trace.store(nullptr);
    throw;
  }
}

DIST_INLINE TraceFile::~TraceFile() {
  detail::active_trace.store(nullptr);
  try {
    trace_.append_to_file(path_);
    if (trace_.dropped() != 0)
      detail::Warning{}.emit(
          concat(path_, " lacks ", trace_.dropped(), " events that did not fit: give TraceFile a larger capacity."));
  } catch (const std::exception& error) {
    detail::Warning{}.emit(error.what());
  }
}

namespace detail {

DIST_INLINE void trace_as_the_environment_asks() {
  static const std::optional<TraceFile> asked = []() -> std::optional<TraceFile> {
    const char* const path = std::getenv("DIST_TRACE");
    if (path == nullptr || *path == '\0' || active_trace.load() != nullptr) return std::nullopt;
    return std::optional<TraceFile>{std::in_place, path};
  }();
}

DIST_INLINE void name_traced_process(std::size_t number, std::string name) {
  if (Trace* const trace = active_trace.load(std::memory_order_relaxed)) trace->name_process(number, std::move(name));
}

}  // namespace detail

}  // namespace dist
