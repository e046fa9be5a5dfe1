#pragma once

#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>
#include <string>
#include <string_view>

#include <dist/core/duration.hpp>
#include <dist/core/error.hpp>
#include <dist/core/log.hpp>
#include <dist/io/tfrecord.hpp>
#include <dist/io/writable_file.hpp>

namespace dist::summary {

/// When an event file's events go to the disk, besides at `flush` and `close`: as soon as so many wait, or an event is
/// added after so long. The defaults are TensorFlow's.
struct FlushPolicy {
  std::size_t most_waiting = 10;
  std::chrono::milliseconds longest_wait{120'000};
};

/// A file of events that TensorBoard finds: TFRecords, under the name
/// `events.out.tfevents.<seconds since 1970>.<host>.<process id>.<n>.v2`, where `n` counts the files of the process.
///
/// A program that ends without a word loses the events that wait. Not for several threads at a time.
class EventFile {
 public:
  /// Makes a file in `folder`, which is made too where it is missing, with `first` as its first event; `wall_time` is in
  /// seconds since 1970. Throws FileError, which names the folder or the file, where the system refuses.
  EventFile(const std::string& folder, double wall_time, std::string_view first, FlushPolicy policy = {})
      : policy_(policy), file_(made_in(folder, wall_time)) {
    append(first);
    flush();
  }
  /// Writes the events that wait. Where that fails, a warning on stderr names the file.
  ~EventFile() {
    try {
      close();
    } catch (const std::exception& error) {
      dist::detail::Warning{}.emit(concat("events are lost: ", error.what()));
    }
  }
  EventFile(const EventFile&) = delete;
  EventFile& operator=(const EventFile&) = delete;

  /// Adds an event, a serialised message of event.hpp. Throws FileError when it is time to write and the disk is full,
  /// say: the event is not added then, those before it wait for the next try, and the file ends with a whole record.
  void append(std::string_view event) {
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

  /// Hands the events that wait to the system, so that other processes see them. Throws FileError when it does not take
  /// all; then the file has none of them, and they wait for the next try.
  void flush() {
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

  /// Writes the events that wait, and closes the file. Throws FileError as `flush` does, and is done with the file even
  /// then.
  void close() {
    try {
      flush();
    } catch (...) {
      waiting_.clear();
      try {
        file_.close();
      } catch (const FileError&) {  // the first failure says more
      }
      throw;
    }
    file_.close();
  }

  [[nodiscard]] const std::string& path() const noexcept { return file_.name(); }

 private:
  [[nodiscard]] static std::string made_in(const std::string& folder, double wall_time) {
    static std::atomic<unsigned> files{0};
    char host[256] = {};
    if (::gethostname(host, sizeof host - 1) != 0 || host[0] == '\0') host[0] = '-';
    io::make_folders(folder);
    std::string seconds = std::to_string(static_cast<std::int64_t>(wall_time));
    if (seconds.size() < 10) seconds.insert(0, 10 - seconds.size(), '0');
    return concat(folder, folder.ends_with('/') ? "" : "/", "events.out.tfevents.", seconds, ".",
                  static_cast<const char*>(host), ".", ::getpid(), ".", files++, ".v2");
  }

  FlushPolicy policy_;
  io::WritableFile file_;
  std::string waiting_;      // whole records
  std::size_t appends_ = 0;  // since the last flush
  std::uint64_t size_ = 0;   // of the file
  std::chrono::steady_clock::time_point last_flush_ = std::chrono::steady_clock::now();
};

}  // namespace dist::summary
