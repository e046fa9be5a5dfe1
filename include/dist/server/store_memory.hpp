#pragma once

#include <pthread.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include <dist/core/algorithms.hpp>
#include <dist/core/config.hpp>
#include <dist/core/duration.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/device/arena.hpp>
#include <dist/device/shared_memory.hpp>
#include <dist/device/wait.hpp>
#include <dist/server/shard_spec.hpp>

namespace dist {

/// A mutex in memory shared by processes, at any address. It has no destructor, because other processes may still use
/// it.
///
/// If a process ends while it holds the mutex, another can lock it. A process must therefore mark guarded data before
/// it changes it.
class RobustMutex {
 public:
  RobustMutex() noexcept {
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&mutex_, &attributes);
    pthread_mutexattr_destroy(&attributes);
  }
  RobustMutex(const RobustMutex&) = delete;
  RobustMutex& operator=(const RobustMutex&) = delete;

  /// Locks the mutex if it is free or its owner has ended. Returns true if it did, without waiting.
  [[nodiscard]] bool try_lock() noexcept {
    int code = pthread_mutex_trylock(&mutex_);
    if (code == EOWNERDEAD) code = pthread_mutex_consistent(&mutex_);
    return code == 0;
  }
  /// Returns false if the mutex is not free within `longest`.
  [[nodiscard]] bool lock_for(std::chrono::nanoseconds longest) noexcept {
    if (try_lock()) return true;
    // The clock of the POSIX function for this may be set back.
    const std::int64_t end = detail::monotonic_nanoseconds() + longest.count();
    bool locked = false;
    for (std::int64_t left = longest.count(); !locked && left > 0; left = end - detail::monotonic_nanoseconds())
      unlocked_.wait([&] { return locked = try_lock(); }, std::min(left, between_looks));
    return locked || try_lock();
  }
  /// Unlocks the mutex, and wakes a waiting process.
  void unlock() noexcept {
    pthread_mutex_unlock(&mutex_);
    unlocked_.notify();
  }

 private:
  /// Limits each wait, because a process that ends notifies no one.
  static constexpr std::int64_t between_looks = 10'000'000;

  pthread_mutex_t mutex_;
  detail::SharedEventCount unlocked_;
};

}  // namespace dist

namespace dist::server {

/// The state of a shard that all processes share, except its elements. Its memory is reused only for other ShardStates:
/// a process with a reference to a dropped shard still finds a mutex, and the serial number shows that the shard was
/// dropped.
struct ShardState {
  static constexpr std::size_t most_slots = 48;

  RobustMutex mutex;
  /// Sequence counter, incremented before and after each change of the elements: odd during a change, and without a
  /// shard. A reader without the mutex uses it to detect changes.
  std::atomic<std::uint64_t> changes{1};
  std::atomic<std::uint64_t> serial{0};  ///< unique in the store; 0: no shard
  std::atomic<std::uint64_t> version{0};
  std::atomic<std::uint64_t> slots{0};
  std::atomic<std::int32_t> holder{0};  ///< last process that locked the mutex
  // Guarded by the mutex:
  /// The process that changes the elements. If it is still set after another locks the mutex, that process ended
  /// meanwhile.
  std::int32_t changer = 0;
  Staleness staleness;
  std::array<std::uint64_t, 1 + most_slots> arrays{};  ///< offsets of the elements and slots
};

/// The memory of a store's shards. Offsets in it are valid in every process that maps it. Thread-safe.
class StoreMemory {
 public:
  /// Reserves address space up to the memory of the machine. If the system cannot share that much, other processes
  /// cannot map it. Throws OutOfMemory.
  StoreMemory(Reach reach, std::uint64_t incarnation);
  StoreMemory(const StoreMemory&) = delete;
  StoreMemory& operator=(const StoreMemory&) = delete;

  /// Maps the memory of another process's store, without the ability to allocate. Returns nullptr if the system does
  /// not allow it, or if the incarnation differs.
  [[nodiscard]] static std::shared_ptr<StoreMemory> attach(const StoreMemoryHandle& place, std::uint64_t incarnation,
                                                           bool only_to_read = false);

  [[nodiscard]] StoreMemoryHandle place() const;
  /// True if the store has not closed. A store that crashes does not close.
  [[nodiscard]] bool is_open() const noexcept { return header().store.load(std::memory_order_acquire) != 0; }
  /// Marks the store as closed: later changes by other processes are lost.
  void close() noexcept { header().store.store(0, std::memory_order_release); }

  /// The id of this process.
  [[nodiscard]] std::int32_t process() const noexcept { return process_; }
  [[nodiscard]] std::byte* at(std::uint64_t offset) const noexcept { return base_ + offset; }
  [[nodiscard]] ShardState& state_at(std::uint64_t offset) const noexcept {
    return *reinterpret_cast<ShardState*>(at(offset));
  }

  /// Allocates zeros, aligned to a page. Throws OutOfMemory.
  [[nodiscard]] std::uint64_t allocate(std::size_t bytes) { return arena_->allocate(bytes); }
  void release(std::uint64_t offset, std::size_t bytes) noexcept {
    arena_->release(static_cast<std::size_t>(offset), bytes);
  }
  /// The offset of an unused ShardState. Throws OutOfMemory.
  [[nodiscard]] std::uint64_t take_state();
  void give_back_state(std::uint64_t offset) noexcept;
  /// A number that is unique in the store.
  [[nodiscard]] std::uint64_t next_serial() noexcept { return serials_.fetch_add(1, std::memory_order_relaxed) + 1; }

 private:
  /// The beginning of the memory.
  struct Header {
    std::atomic<std::uint64_t> store{0};  ///< incarnation; 0: closed
  };

  explicit StoreMemory(SharedMemory attached) noexcept;
  [[nodiscard]] Header& header() const noexcept { return *reinterpret_cast<Header*>(base_); }

  const std::int32_t process_;
  std::optional<SharedMemory> shared_;
  std::optional<Arena> arena_;  ///< only in the store's process
  std::byte* base_ = nullptr;
  std::mutex mutex_;
  std::vector<std::uint64_t> free_states_;
  std::atomic<std::uint64_t> serials_{0};
};

}  // namespace dist::server

#ifndef DIST_COMPILED
#include <dist/server/store_memory.ipp>
#endif
