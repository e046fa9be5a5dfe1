#pragma once

#include <sys/resource.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <string>
#include <utility>

#include <dist/checkpoint/folder.hpp>
#include <dist/checkpoint/manifest.hpp>
#include <dist/checkpoint/snapshot.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/condition_variable.hpp>
#include <dist/core/config.hpp>
#include <dist/core/duration.hpp>
#include <dist/core/error.hpp>
#include <dist/core/functions.hpp>
#include <dist/core/log.hpp>
#include <dist/core/threads.hpp>
#include <dist/device/service_thread.hpp>
#include <dist/device/wait.hpp>
#include <dist/io/writable_file.hpp>

namespace dist::detail {

/// The destination and the ids of a snapshot.
struct SaveTarget {
  std::string folder;
  std::uint64_t id = 0;
  std::uint64_t serial = 0;
  std::chrono::nanoseconds timeout{};  ///< maximum time that the first process waits for the others' files

  /// A file that the first process creates before the others begin, to verify that all processes use the same folder.
  [[nodiscard]] std::string begun_path() const { return concat(folder, "/", shard_prefix(id), "begun"); }
};

/// One process's part of a save, in a background thread. Each process writes its file of tensors; the first one waits
/// for all files, and then writes the manifest, which completes the checkpoint. Processes communicate only through
/// files.
class BackgroundSave {
 public:
  /// Calls `then` after writing the manifest, in the writing thread of the first process. Throws OutOfMemory.
  BackgroundSave(SaveTarget place, Snapshot snapshot, UniqueFunction<void> then)
      : place_(std::move(place)), snapshot_(std::move(snapshot)), then_(std::move(then)) {
    thread_ = start_service_thread("saving a checkpoint", [this] { write(); });
  }
  BackgroundSave(const BackgroundSave&) = delete;
  BackgroundSave& operator=(const BackgroundSave&) = delete;
  /// Waits for the save. During stack unwinding, other processes may have exited, so it gives up after some seconds.
  ~BackgroundSave() {
    if (!thread_.is_here()) return;
    if (std::uncaught_exceptions() > 0) {
      wait_for_file();
      set(looks_now_);
      {
        Lock lock{mutex_};
        changed_.wait_for(lock, grace, [&] { return done_; });
      }
      cancel();
    }
    if (thread_.joinable()) thread_.join();
    if (failure_ && !is_awaited_) tell();
  }

  [[nodiscard]] const std::string& folder() const noexcept { return place_.folder; }
  [[nodiscard]] bool is_done() const noexcept {
    const std::lock_guard lock{mutex_};
    return done_;
  }
  /// Waits until this process has written its file, or failed. `wait` throws the error.
  void wait_for_file() noexcept {
    Lock lock{mutex_};
    changed_.wait(lock, [&] { return has_file_ || done_; });
  }
  /// Waits for this process's part, and throws its error. The first process polls for the other files without delay.
  void wait() {
    set(looks_now_);
    if (thread_.joinable()) thread_.join();
    is_awaited_ = true;
    if (failure_) std::rethrow_exception(failure_);
  }
  /// True if the program has waited, and received errors.
  [[nodiscard]] bool is_awaited() const noexcept { return is_awaited_; }
  void set_awaited() noexcept { is_awaited_ = true; }
  /// True if this process's part has failed.
  [[nodiscard]] bool is_failed() const noexcept { return is_done() && failure_; }
  /// Stops waiting for other processes, after a failure of one of them.
  void cancel() noexcept { set(is_cancelled_); }

 private:
  using Lock = ConditionVariable::Lock;

  void set(bool& event) noexcept {
    const std::lock_guard lock{mutex_};
    event = true;
    changed_.notify_all();
  }

  [[nodiscard]] std::string path_of(std::size_t rank) const {
    return concat(place_.folder, "/", shard_name(place_.id, rank, snapshot_.processes()));
  }
  [[nodiscard]] std::string failed_path(std::size_t rank) const { return concat(path_of(rank), ".failed"); }

  void write() noexcept {
    ::setpriority(PRIO_PROCESS, 0, ::getpriority(PRIO_PROCESS, 0) + niceness);  // of this thread only
    try {
      for (std::string folder = place_.folder; folder != "." && folder != "/";) {  // any ancestor may be new
        folder = folder_of(folder);
        sync_folder(folder);
      }
      write_shard(path_of(snapshot_.rank()), snapshot_);
      set(has_file_);
      if (snapshot_.rank() == 0) complete();
    } catch (...) {
      failure_ = std::current_exception();
      remove_files();
    }
    set(done_);
  }

  void complete() {
    Manifest manifest{.id = place_.id, .serial = place_.serial, .files = {}};
    const std::int64_t start = monotonic_nanoseconds();
    for (std::size_t rank = 0; rank < snapshot_.processes(); ++rank) {
      await_file(rank, start);
      manifest.files.push_back(describe_shard(place_.folder, shard_name(place_.id, rank, snapshot_.processes())));
    }
    const std::string all = written(manifest);
    io::AtomicFile file{manifest_path(place_.folder)};
    file.append(std::as_bytes(std::span<const char>{all.data(), all.size()}));
    file.commit();
    is_complete_ = true;
    remove_older_files(place_.folder, manifest);
    if (then_) then_();
  }
  /// Polls for the file with growing pauses, to limit the load on the shared file system.
  void await_file(std::size_t rank, std::int64_t start) {
    for (std::chrono::nanoseconds pause = shortest_pause; ::access(path_of(rank).c_str(), F_OK) != 0;) {
      if (::access(failed_path(rank).c_str(), F_OK) == 0)
        throw FileError(place_.folder, "is an incomplete checkpoint",
                        concat("process ", rank, " could not write its part"), "Read the error of that process");
      Lock lock{mutex_};
      if (is_cancelled_)
        throw FileError(place_.folder, "is an incomplete checkpoint", "another process failed",
                        "Read the error of that process");
      if (place_.timeout.count() > 0 && monotonic_nanoseconds() - start > place_.timeout.count())
        throw FileError(place_.folder, "is an incomplete checkpoint",
                        concat("process ", rank, " did not write its part within ", place_.timeout),
                        "Use a folder that all processes share, or a longer timeout");
      changed_.wait_for(lock, pause, [&] { return is_cancelled_ || looks_now_; });
      pause = std::exchange(looks_now_, false) ? shortest_pause : std::min(2 * pause, longest_pause);
    }
  }
  void remove_files() noexcept {
    if (is_complete_) return;
    try {
      ::unlink(path_of(snapshot_.rank()).c_str());
      if (snapshot_.rank() > 0) {
        io::WritableFile{failed_path(snapshot_.rank())}.close();
      } else {
        ::unlink(place_.begun_path().c_str());
        ::rmdir(place_.folder.c_str());  // if it is empty
      }
    } catch (...) {
      // The first process gets the error in its wait or times out.
    }
  }
  void tell() const noexcept {
    try {
      std::rethrow_exception(failure_);
    } catch (const std::exception& error) {
      log_line(concat("the checkpoint ", place_.folder,
                      " was not saved, and the program did not wait for the result: ", error.what()));
    } catch (...) {
      log_line(concat("the checkpoint ", place_.folder, " was not saved"));
    }
  }

  static constexpr std::chrono::seconds grace{3};
  static constexpr std::chrono::nanoseconds shortest_pause = std::chrono::milliseconds{10};
  static constexpr std::chrono::nanoseconds longest_pause = std::chrono::seconds{1};
  /// The writing thread gets a tenth of the weight of a program thread on a contended processor. bench_checkpoint
  /// measures the effect on step times.
  static constexpr int niceness = 10;

  SaveTarget place_;
  Snapshot snapshot_;
  UniqueFunction<void> then_;
  std::exception_ptr failure_;
  bool is_awaited_ = false;
  bool is_complete_ = false;  // of the writing thread
  mutable std::mutex mutex_;  // guards the following members
  ConditionVariable changed_;
  bool has_file_ = false;
  bool looks_now_ = false;
  bool is_cancelled_ = false;
  bool done_ = false;
  JoinedThread thread_;
};

}  // namespace dist::detail
