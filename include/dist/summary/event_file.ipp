#pragma once

#include <atomic>
#include <exception>
#include <span>

#include <dist/core/error.hpp>
#include <dist/core/log.hpp>
#include <dist/summary/event_file.hpp>

namespace dist::summary {

DIST_INLINE EventFile::EventFile(const std::string& folder, double wall_time, std::string_view first,
                                 FlushPolicy policy)
    : policy_(policy), file_(made_in(folder, wall_time)) {
  append(first);
  flush();
}

DIST_INLINE EventFile::~EventFile() {
  try {
    close();
  } catch (const std::exception& error) {
    dist::detail::Warning{}.emit(concat("events are lost: ", error.what()));
  }
}

DIST_INLINE void EventFile::append(std::string_view event) {
  if (!file_.is_open())
    throw FileError(file_.name(), "is closed", "an event was added after the file was closed", "Make another one");
  const std::size_t before = waiting_.size();
  io::append_tfrecord(waiting_, event);
  const auto now = std::chrono::steady_clock::now();
  if (++appends_ < policy_.most_waiting && now - last_flush_ < policy_.longest_wait) return;
  try {
    flush();
  } catch (...) {
    waiting_.resize(before);
    throw;
  }
}

DIST_INLINE void EventFile::flush() {
  if (!file_.is_open()) return;
  try {
    file_.write_at(size_, std::as_bytes(std::span<const char>{waiting_.data(), waiting_.size()}));
  } catch (...) {
    file_.truncate(size_);
    throw;
  }
  size_ += waiting_.size();
  waiting_.clear();
  appends_ = 0;
  last_flush_ = std::chrono::steady_clock::now();
}

DIST_INLINE void EventFile::close() {
  try {
    flush();
  } catch (...) {
    waiting_.clear();
    try {
      file_.close();
    } catch (const FileError&) {  // the first failure is more specific
    }
    throw;
  }
  file_.close();
}

DIST_INLINE std::string EventFile::made_in(const std::string& folder, double wall_time) {
  static std::atomic<unsigned> files{0};
  char host[256] = {};
  if (::gethostname(host, sizeof host - 1) != 0 || host[0] == '\0') host[0] = '-';
  io::make_folders(folder);
  std::string seconds = std::to_string(static_cast<std::int64_t>(wall_time));
  if (seconds.size() < 10) seconds.insert(0, 10 - seconds.size(), '0');
  return concat(folder, folder.ends_with('/') ? "" : "/", "events.out.tfevents.", seconds, ".",
                static_cast<const char*>(host), ".", ::getpid(), ".", files++, ".v2");
}

}  // namespace dist::summary
