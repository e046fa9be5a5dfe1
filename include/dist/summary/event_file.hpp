#pragma once

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <dist/core/config.hpp>
#include <dist/core/duration.hpp>
#include <dist/io/tfrecord.hpp>
#include <dist/io/writable_file.hpp>

namespace dist::summary {

/// Limits for pending events. In addition to `flush` and `close`, a file writes them when this many are pending, or when an
/// event is added this long after the last write. The defaults are TensorFlow's.
struct FlushPolicy {
  std::size_t most_waiting = 10;                    ///< number of events
  std::chrono::milliseconds longest_wait{120'000};  ///< after the last write
};

/// A file of events for TensorBoard: TFRecords in the file `events.out.tfevents.<seconds since 1970>.<host>.<process
/// id>.<n>.v2`, where `n` counts the files of the process.
///
/// A program that is killed loses the pending events. Not thread-safe.
class EventFile {
 public:
  /// Creates a file in `folder`, and the folder if missing, with `first` as its first event; `wall_time` is in seconds
  /// since 1970. Throws FileError, naming the folder or the file, if the system call fails.
  EventFile(const std::string& folder, double wall_time, std::string_view first, FlushPolicy policy = {});
  /// Writes the pending events. On failure, prints a warning with the name of the file to stderr.
  ~EventFile();
  EventFile(const EventFile&) = delete;
  EventFile& operator=(const EventFile&) = delete;

  /// Adds an event, a serialised message. If it is time to write and that fails, throws FileError: the event is not
  /// added, previous ones remain pending, and the file ends with a whole record.
  void append(std::string_view event);

  /// Writes the pending events, so that other processes see them. Throws FileError if that fails; they then remain
  /// pending, and the file has none of them.
  void flush();

  /// Writes the pending events and closes the file. Throws FileError like `flush`, and closes the file even then.
  void close();

  /// The path of the file.
  [[nodiscard]] const std::string& path() const noexcept { return file_.name(); }

 private:
  [[nodiscard]] static std::string made_in(const std::string& folder, double wall_time);

  FlushPolicy policy_;
  io::WritableFile file_;
  std::string waiting_;      // whole records
  std::size_t appends_ = 0;  // since the last flush
  std::uint64_t size_ = 0;   // of the file
  std::chrono::steady_clock::time_point last_flush_ = std::chrono::steady_clock::now();
};

}  // namespace dist::summary

#ifndef DIST_COMPILED
#include <dist/summary/event_file.ipp>
#endif
