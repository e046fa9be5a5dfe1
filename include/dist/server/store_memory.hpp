#pragma once

#include <pthread.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include <dist/core/algorithms.hpp>
#include <dist/core/config.hpp>
#include <dist/core/duration.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/device/arena.hpp>
#include <dist/device/shared_memory.hpp>
#include <dist/device/wait.hpp>
#include <dist/io/element_type.hpp>
#include <dist/server/shard_spec.hpp>
#include <dist/server/store_memory_handle.hpp>

namespace dist {

/// A mutex for the threads of all processes that map its memory, at whatever address. It has no destructor, because other
/// processes may still use it.
///
/// If a process ends while it holds the mutex, the next one gets it. What the mutex guards may then be half changed, so
/// whoever changes that leaves a note there first.
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

  [[nodiscard]] bool try_lock() noexcept {
    int code = pthread_mutex_trylock(&mutex_);
    if (code == EOWNERDEAD) code = pthread_mutex_consistent(&mutex_);
    return code == 0;
  }
  /// Returns false if the mutex was not free within `longest`.
  [[nodiscard]] bool lock_for(std::chrono::nanoseconds longest) noexcept {
    if (try_lock()) return true;
    // POSIX waits for a mutex by a clock that may be set back.
    const std::int64_t end = detail::monotonic_nanoseconds() + longest.count();
    bool locked = false;
    for (std::int64_t left = longest.count(); !locked && left > 0; left = end - detail::monotonic_nanoseconds())
      unlocked_.wait([&] { return locked = try_lock(); }, std::min(left, between_looks));
    return locked || try_lock();
  }
  void unlock() noexcept {
    pthread_mutex_unlock(&mutex_);
    unlocked_.notify();
  }

 private:
  /// A process that ends with the mutex notifies nobody.
  static constexpr std::int64_t between_looks = 10'000'000;

  pthread_mutex_t mutex_;
  detail::SharedEventCount unlocked_;
};

}  // namespace dist

namespace dist::server {

/// What all processes that map the memory of a store know about a shard, besides its elements. Its place is used for other
/// ShardStates only, so a process that remembers a dropped shard still finds a mutex there, and sees by the serial number
/// that the shard is gone.
struct ShardState {
  static constexpr std::size_t most_slots = 48;

  RobustMutex mutex;
  /// Grows when the elements begin to change, and when they have changed: odd meanwhile, and while there is no shard. Who has read
  /// them without the mutex sees by this whether they were as they are after one of these changes.
  std::atomic<std::uint64_t> changes{1};
  std::atomic<std::uint64_t> serial{0};  ///< no other shard of the store has it; 0 where there is no shard
  std::atomic<std::uint64_t> version{0};
  std::atomic<std::uint64_t> slots{0};
  std::atomic<std::int32_t> holder{0};  ///< the process that has the mutex, or had it last
  // The mutex guards what follows.
  /// The process that changes the elements. One that is still noted when the next process gets the mutex has ended meanwhile.
  std::int32_t changer = 0;
  Staleness staleness;
  std::array<std::uint64_t, 1 + most_slots> arrays{};  ///< the offsets of the elements and of the slots
};

/// The memory in which the shards of a store lie. A place in it is an offset, which holds in every process that maps it. Any
/// thread.
class StoreMemory {
 public:
  /// New memory, with room for as much as the machine has. Where the system lets other processes have less, it is this process's
  /// only. Throws OutOfMemory.
  StoreMemory(Reach reach, std::uint64_t incarnation);
  StoreMemory(const StoreMemory&) = delete;
  StoreMemory& operator=(const StoreMemory&) = delete;

  /// The memory of the store of that incarnation in another process, where nothing can be allocated; or nullptr if the system
  /// does not let this process map it, or another store is there.
  [[nodiscard]] static std::shared_ptr<StoreMemory> attach(const StoreMemoryHandle& place, std::uint64_t incarnation,
                                                           bool only_to_read = false);

  [[nodiscard]] StoreMemoryHandle place() const;
  /// Whether its store exists, as far as that says when it ends.
  [[nodiscard]] bool is_open() const noexcept { return header().store.load(std::memory_order_acquire) != 0; }
  /// The store ends: what others change from here on is lost.
  void close() noexcept { header().store.store(0, std::memory_order_release); }

  /// The number of this process.
  [[nodiscard]] std::int32_t process() const noexcept { return process_; }
  [[nodiscard]] std::byte* at(std::uint64_t offset) const noexcept { return base_ + offset; }
  [[nodiscard]] ShardState& state_at(std::uint64_t offset) const noexcept {
    return *reinterpret_cast<ShardState*>(at(offset));
  }

  /// The offset of `bytes` zeros, aligned to a page. Throws OutOfMemory.
  [[nodiscard]] std::uint64_t allocate(std::size_t bytes) { return arena_->allocate(bytes); }
  void release(std::uint64_t offset, std::size_t bytes) noexcept {
    arena_->release(static_cast<std::size_t>(offset), bytes);
  }
  /// The offset of a ShardState that no shard has. Throws OutOfMemory.
  [[nodiscard]] std::uint64_t take_state();
  void give_back_state(std::uint64_t offset) noexcept;
  /// A number that no other shard of the store has.
  [[nodiscard]] std::uint64_t next_serial() noexcept { return serials_.fetch_add(1, std::memory_order_relaxed) + 1; }

 private:
  /// The beginning of the memory.
  struct Header {
    std::atomic<std::uint64_t> store{0};  ///< its incarnation; 0: it has ended
  };

  explicit StoreMemory(SharedMemory attached) noexcept;
  [[nodiscard]] Header& header() const noexcept { return *reinterpret_cast<Header*>(base_); }

  const std::int32_t process_;
  std::optional<SharedMemory> shared_;
  std::optional<Arena> arena_;  ///< in the store's process
  std::byte* base_ = nullptr;
  std::mutex mutex_;
  std::vector<std::uint64_t> free_states_;
  std::atomic<std::uint64_t> serials_{0};
};

}  // namespace dist::server

#ifndef DIST_COMPILED
#include <dist/server/store_memory.ipp>
#endif
