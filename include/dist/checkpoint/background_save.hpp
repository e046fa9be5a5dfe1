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
#include <dist/checkpoint/shard.hpp>
#include <dist/checkpoint/snapshot.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/condition_variable.hpp>
#include <dist/core/duration.hpp>
#include <dist/core/error.hpp>
#include <dist/core/functions.hpp>
#include <dist/core/log.hpp>
#include <dist/core/threads.hpp>
#include <dist/device/service_thread.hpp>
#include <dist/device/wait.hpp>
#include <dist/io/writable_file.hpp>

namespace dist::detail {

/// Where and under which number a snapshot is written.
struct SaveTarget {
  std::string folder;
  std::uint64_t id = 0;
  std::uint64_t serial = 0;
  std::chrono::nanoseconds timeout{};  ///< the longest that the first process waits for the files of the others

  /// A file that the first process makes before the others begin: who does not see it has another folder of that name.
  [[nodiscard]] std::string begun_path() const { return concat(folder, "/", shard_prefix(id), "begun"); }
};

/// One process's part of a save, in a thread of its own. Each writes its file of tensors; the first one waits for all of
/// them in the folder, and writes the manifest, which makes them a checkpoint. They speak through files alone, so that
/// nothing that computes is disturbed.
class BackgroundSave {
 public:
  /// `then` is called after the manifest was written, in the first process and the same thread. Throws OutOfMemory.
  BackgroundSave(SaveTarget place, Snapshot snapshot, UniqueFunction<void> then)
      : place_(std::move(place)), snapshot_(std::move(snapshot)), then_(std::move(then)) {
    thread_ = start_service_thread("saving a checkpoint", [this] { write(); });
  }
  BackgroundSave(const BackgroundSave&) = delete;
  BackgroundSave& operator=(const BackgroundSave&) = delete;
  /// Waits for the save. Where an exception is on its way, other processes may be gone: after some seconds it goes on
  /// without them.
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
  /// Waits until this process has written its file; what kept it from that, `wait` throws.
  void wait_for_file() noexcept {
    Lock lock{mutex_};
    changed_.wait(lock, [&] { return has_file_ || done_; });
  }
  /// Waits for this process's part, and throws what kept it from being written. The first process looks at once for the
  /// files of the others.
  void wait() {
    set(looks_now_);
    if (thread_.joinable()) thread_.join();
    is_awaited_ = true;
    if (failure_) std::rethrow_exception(failure_);
  }
  /// Whether the program has waited, and so knows what became of it.
  [[nodiscard]] bool is_awaited() const noexcept { return is_awaited_; }
  void set_awaited() noexcept { is_awaited_ = true; }
  /// Whether it is known already that this process's part failed.
  [[nodiscard]] bool is_failed() const noexcept { return is_done() && failure_; }
  /// Waits for no other process any longer: one of them is known to have failed.
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
  /// A file that says that a process could not write its own.
  [[nodiscard]] std::string failed_path(std::size_t rank) const { return concat(path_of(rank), ".failed"); }

  void write() noexcept {
    ::setpriority(PRIO_PROCESS, 0, ::getpriority(PRIO_PROCESS, 0) + niceness);  // of this thread alone
    try {
      for (std::string folder = place_.folder; folder != "." && folder != "/";) {  // any of them may be new
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
  /// Looks for the file less and less often, because each look asks a file system that all processes share.
  void await_file(std::size_t rank, std::int64_t start) {
    for (std::chrono::nanoseconds pause = shortest_pause; ::access(path_of(rank).c_str(), F_OK) != 0;) {
      if (::access(failed_path(rank).c_str(), F_OK) == 0)
        throw FileError(place_.folder, "is a checkpoint that was not completed",
                        concat("process ", rank, " could not write its part"), "See what that process says");
      Lock lock{mutex_};
      if (is_cancelled_)
        throw FileError(place_.folder, "is a checkpoint that was not completed", "another process failed",
                        "See what that process says");
      if (place_.timeout.count() > 0 && monotonic_nanoseconds() - start > place_.timeout.count())
        throw FileError(place_.folder, "is a checkpoint that was not completed",
                        concat("process ", rank, " had not written its part after ", place_.timeout),
                        "Give a folder that all processes share, or a longer timeout");
      changed_.wait_for(lock, pause, [&] { return is_cancelled_ || looks_now_; });
      pause = std::exchange(looks_now_, false) ? shortest_pause : std::min(2 * pause, longest_pause);
    }
  }
  /// Takes away what this process has written of a checkpoint that will not be one.
  void remove_files() noexcept {
    if (is_complete_) return;
    try {
      ::unlink(path_of(snapshot_.rank()).c_str());
      if (snapshot_.rank() > 0) {
        io::WritableFile{failed_path(snapshot_.rank())}.close();
      } else {
        ::unlink(place_.begun_path().c_str());
        ::rmdir(place_.folder.c_str());  // where it is empty
      }
    } catch (...) {
      // The first process hears of it when it waits, or at its deadline.
    }
  }
  void tell() const noexcept {
    try {
      std::rethrow_exception(failure_);
    } catch (const std::exception& error) {
      log_line(
          concat("the checkpoint ", place_.folder, " was not saved, and nobody waited to hear of it: ", error.what()));
    } catch (...) {
      log_line(concat("the checkpoint ", place_.folder, " was not saved"));
    }
  }

  static constexpr std::chrono::seconds grace{3};
  static constexpr std::chrono::nanoseconds shortest_pause = std::chrono::milliseconds{10};
  static constexpr std::chrono::nanoseconds longest_pause = std::chrono::seconds{1};
  /// A tenth of what a thread of the program has, of a processor for which they compete; bench_checkpoint measures what
  /// a step takes meanwhile.
  static constexpr int niceness = 10;

  SaveTarget place_;
  Snapshot snapshot_;
  UniqueFunction<void> then_;
  std::exception_ptr failure_;
  bool is_awaited_ = false;
  bool is_complete_ = false;  // of the writing thread
  mutable std::mutex mutex_;  // of what follows
  ConditionVariable changed_;
  bool has_file_ = false;
  bool looks_now_ = false;
  bool is_cancelled_ = false;
  bool done_ = false;
  JoinedThread thread_;
};

}  // namespace dist::detail
