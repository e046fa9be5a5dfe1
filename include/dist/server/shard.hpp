#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include <dist/core/config.hpp>
#include <dist/core/duration.hpp>
#include <dist/core/functions.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/io/element_type.hpp>
#include <dist/server/shard_spec.hpp>
#include <dist/server/store_memory.hpp>

namespace dist::server {

/// The elements of a shard, and the slots of optimizers, arrays of the same size and type. One mutex guards them, so
/// that each request reads and changes a shard atomically.
///
/// The store's process owns the arrays. In processes that map its memory, a Shard refers to them, and detects when the
/// store has dropped the shard.
class Shard {
 public:
  /// The maximum wait for a shard that is locked elsewhere.
  static constexpr std::chrono::nanoseconds longest_wait = std::chrono::seconds{60};
  /// The maximum wait if a signal has stopped the process with the lock.
  static constexpr std::chrono::nanoseconds longest_wait_for_stopped = std::chrono::seconds{2};

  /// Creates a shard of zeros. Throws StoreError if memory is exhausted.
  Shard(std::shared_ptr<StoreMemory> memory, ShardSpec spec, io::ElementType type);
  /// Refers to a shard of another process.
  Shard(std::shared_ptr<StoreMemory> memory, SharedShard found);
  Shard(const Shard&) = delete;
  Shard& operator=(const Shard&) = delete;
  ~Shard();

  [[nodiscard]] const ShardSpec& spec() const noexcept { return found_.spec; }
  [[nodiscard]] io::ElementType type() const noexcept { return found_.type; }
  [[nodiscard]] std::size_t elements() const noexcept { return elements_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return elements_ * io::bytes_of(type()); }
  [[nodiscard]] std::size_t row_bytes() const noexcept {
    return static_cast<std::size_t>(spec().row_size) * io::bytes_of(type());
  }
  /// The number of applied pushes.
  [[nodiscard]] std::uint64_t version() const noexcept { return state().version.load(std::memory_order_acquire); }
  [[nodiscard]] std::size_t slots() const noexcept {
    return static_cast<std::size_t>(state().slots.load(std::memory_order_acquire));
  }
  [[nodiscard]] bool is_gone() const noexcept {
    return state().serial.load(std::memory_order_acquire) != found_.serial;
  }
  /// The data that other processes need to refer to the shard.
  [[nodiscard]] const SharedShard& found() const noexcept { return found_; }

  /// Locks a shard. Throws StoreError if the shard was dropped, if a process ended while it changed the elements, or if
  /// the lock is not free within `longest`.
  class Locked {
   public:
    explicit Locked(Shard& shard, std::chrono::nanoseconds longest = longest_wait);
    Locked(const Locked&) = delete;
    Locked& operator=(const Locked&) = delete;
    ~Locked() { state().mutex.unlock(); }

    /// The weights, and `count` existing slots from `first` on.
    [[nodiscard]] ShardMemory memory(std::size_t first = 0, std::size_t count = 0) const;
    /// Array 0: the weights; array i > 0: slot i - 1.
    [[nodiscard]] std::span<std::byte> array(std::size_t number) const;
    [[nodiscard]] std::uint64_t version() const noexcept { return shard_.version(); }
    [[nodiscard]] const Staleness& staleness() const noexcept { return state().staleness; }
    /// Calls `change()`, and counts the change. If the process ends meanwhile, the shard becomes unusable.
    template <class Change>
    void change(Change&& change) const {
      const Changing changing{state(), shard_.memory_->process()};
      change();
    }
    /// Counts an applied push and, if known, its staleness.
    void count_push(std::uint64_t behind, bool known) noexcept;
    void count_refusal() noexcept { ++state().staleness.refused; }
    /// Creates the missing ones of `count` slots from `first` on, each filled by `fill(slot, memory)`: all or none.
    /// Throws StoreError if slots before `first` are missing, for more than ShardState::most_slots, or if memory is
    /// exhausted.
    void ensure_slots(std::size_t first, std::size_t count,
                      dist::detail::FunctionRef<void(std::size_t, std::span<std::byte>)> fill) const;

   private:
    class Changing {
     public:
      Changing(ShardState& state, std::int32_t process) noexcept : state_(state) {
        state_.changer = process;
        begin_change(state_);
      }
      Changing(const Changing&) = delete;
      Changing& operator=(const Changing&) = delete;
      ~Changing() {
        end_change(state_);
        state_.changer = 0;
      }

     private:
      ShardState& state_;
    };
    [[nodiscard]] ShardState& state() const noexcept { return shard_.state(); }

    Shard& shard_;
  };
  [[nodiscard]] Locked lock(std::chrono::nanoseconds longest = longest_wait) { return Locked{*this, longest}; }

  /// Calls `copy(elements)` for an array (see Locked::array) without locking, and returns the copied version. Returns
  /// nothing if the elements changed meanwhile, so that the copy may mix versions. Throws StoreError if the shard was
  /// dropped.
  template <class Copy>
  [[nodiscard]] std::optional<std::uint64_t> read(std::size_t number, Copy&& copy) const {
    const std::uint64_t changes = state().changes.load(std::memory_order_acquire);
    if (is_gone()) refuse_gone();
    if (changes % 2 != 0) return std::nullopt;
    const std::uint64_t version = this->version();
    copy(std::span<const std::byte>{array_at(state().arrays[number])});
    std::atomic_thread_fence(std::memory_order_acquire);
    if (state().changes.load(std::memory_order_relaxed) != changes) return std::nullopt;
    return version;
  }

 private:
  static void begin_change(ShardState& state) noexcept {
    state.changes.store(state.changes.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_release);
  }
  static void end_change(ShardState& state) noexcept {
    state.changes.store(state.changes.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }
  [[noreturn]] void refuse_gone() const;
  [[nodiscard]] static std::size_t elements_of(const ShardSpec& spec);
  [[nodiscard]] ShardState& state() const noexcept { return memory_->state_at(found_.state); }
  [[nodiscard]] std::span<std::byte> array_at(std::uint64_t offset) const noexcept {
    return {memory_->at(offset), bytes()};
  }
  /// True if the mutex was locked.
  [[nodiscard]] bool lock_mutex(std::chrono::nanoseconds longest) const noexcept;
  /// Allocates an array of zeros, and returns its offset.
  [[nodiscard]] std::uint64_t zeros() const;
  void release(std::span<const std::uint64_t> arrays) const noexcept;

  const std::shared_ptr<StoreMemory> memory_;
  SharedShard found_;
  const bool is_own_;
  const std::size_t elements_;
};

/// The shards in the memory of a store, by id: all of them in the store's process, and the ones in use in other
/// processes. Thread-safe.
class ShardTable {
 public:
  /// Requests a shard from the store. Throws StoreError if it does not exist.
  using Find = dist::detail::UniqueFunction<SharedShard, ShardId>;

  /// The table of the store itself.
  explicit ShardTable(std::shared_ptr<StoreMemory> memory) : memory_(std::move(memory)) {}
  /// The table of another process. `find` requests shards that are missing or were dropped.
  ShardTable(std::shared_ptr<StoreMemory> memory, Find find) : memory_(std::move(memory)), find_(std::move(find)) {}
  ShardTable(const ShardTable&) = delete;
  ShardTable& operator=(const ShardTable&) = delete;

  [[nodiscard]] const std::shared_ptr<StoreMemory>& memory() const noexcept { return memory_; }

  /// Returns nullptr if the shard is not in the table.
  [[nodiscard]] std::shared_ptr<Shard> find(ShardId id) const;
  /// Throws StoreError if the shard does not exist.
  [[nodiscard]] std::shared_ptr<Shard> require(ShardId id);
  /// Throws StoreError if the id is in use.
  void add(std::shared_ptr<Shard> shard);
  void erase(const std::vector<ShardId>& ids);
  /// In the order of ids.
  [[nodiscard]] std::vector<ShardInfo> list() const;

  /// Throws StoreError for a shard whose id is in use.
  [[noreturn]] static void refuse_second(const ShardSpec& spec);

  /// Makes the table of a store known in this process, by incarnation.
  static void publish(std::uint64_t store, const std::shared_ptr<ShardTable>& shards);
  /// Returns nullptr if this process has no such store.
  [[nodiscard]] static std::shared_ptr<ShardTable> of_store(std::uint64_t store);

 private:
  struct Published {
    std::mutex mutex;
    std::map<std::uint64_t, std::weak_ptr<ShardTable>> tables;
  };
  [[nodiscard]] static Published& published();

  const std::shared_ptr<StoreMemory> memory_;
  const Find find_{};
  mutable std::mutex mutex_;  ///< guards the list, but not the shards
  std::map<ShardId, std::shared_ptr<Shard>> shards_;
};

}  // namespace dist::server

#ifndef DIST_COMPILED
#include <dist/server/shard.ipp>
#endif
