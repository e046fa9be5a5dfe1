#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <dist/core/config.hpp>
#include <dist/core/duration.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/core/short_list.hpp>
#include <dist/core/text.hpp>
#include <dist/io/element_type.hpp>
#include <dist/server/error.hpp>
#include <dist/server/shard_memory.hpp>
#include <dist/server/shard_spec.hpp>
#include <dist/server/store_memory.hpp>
#include <dist/server/store_memory_handle.hpp>

namespace dist::server {

/// The elements of a shard, and the slots that optimizers keep beside them: arrays of as many elements of the same type.
/// One mutex guards all of this, so that each request sees and changes a shard as a whole.
///
/// In the process of its store, a Shard owns these arrays. In other processes that map the store's memory it refers to them,
/// and sees when the store has dropped the shard.
class Shard {
 public:
  /// How long to wait for a shard that somebody else uses.
  static constexpr std::chrono::nanoseconds longest_wait = std::chrono::seconds{60};
  /// After so long a wait ends where a signal has stopped the process that has the shard.
  static constexpr std::chrono::nanoseconds longest_wait_for_stopped = std::chrono::seconds{2};

  /// A new shard of zeros. Throws StoreError if the system does not give the memory.
  Shard(std::shared_ptr<StoreMemory> memory, ShardSpec spec, io::ElementType type);
  /// A shard of another process.
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
  /// How many pushes have changed the shard.
  [[nodiscard]] std::uint64_t version() const noexcept { return state().version.load(std::memory_order_acquire); }
  [[nodiscard]] std::size_t slots() const noexcept {
    return static_cast<std::size_t>(state().slots.load(std::memory_order_acquire));
  }
  /// Whether the store has dropped it.
  [[nodiscard]] bool is_gone() const noexcept {
    return state().serial.load(std::memory_order_acquire) != found_.serial;
  }
  /// What other processes need to refer to it.
  [[nodiscard]] const SharedShard& found() const noexcept { return found_; }

  /// What is done under the lock. Throws StoreError if the shard is gone, if a process has ended while it changed the elements,
  /// or if somebody else uses the shard for longer than `longest`.
  class Locked {
   public:
    explicit Locked(Shard& shard, std::chrono::nanoseconds longest = longest_wait);
    Locked(const Locked&) = delete;
    Locked& operator=(const Locked&) = delete;
    ~Locked() { state().mutex.unlock(); }

    /// The weights and `count` slots from number `first` on, which there must be.
    [[nodiscard]] ShardMemory memory(std::size_t first = 0, std::size_t count = 0) const;
    /// The weights for 0, then the slots.
    [[nodiscard]] std::span<std::byte> array(std::size_t number) const;
    [[nodiscard]] std::uint64_t version() const noexcept { return shard_.version(); }
    [[nodiscard]] const Staleness& staleness() const noexcept { return state().staleness; }
    /// Calls `change()`, which changes elements and counts that. If the process ends meanwhile, nobody can lock the shard any more.
    template <class Change>
    void change(Change&& change) const {
      const Changing changing{state(), shard_.memory_->process()};
      change();
    }
    /// Counts a push that was applied, and its staleness, if that is known.
    void count_push(std::uint64_t behind, bool known) noexcept;
    /// Counts one that was too stale.
    void count_refusal() noexcept { ++state().staleness.refused; }
    /// Makes those of the `count` slots from number `first` on that are missing, each filled by `fill(slot, memory)`: all of
    /// them or none. Throws StoreError if slots before the first are missing, if there would be more than
    /// ShardState::most_slots, or if the system does not give the memory.
    template <class Fill>
    void ensure_slots(std::size_t first, std::size_t count, Fill&& fill) const {
      require_slots(first, count);
      std::vector<std::uint64_t> made;
      try {
        for (std::size_t slot = shard_.slots(); slot < first + count; ++slot) {
          made.push_back(shard_.zeros());
          fill(slot - first, shard_.array_at(made.back()));
        }
      } catch (...) {
        shard_.release(made);
        throw;
      }
      add_slots(made);
    }

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
    void require_slots(std::size_t first, std::size_t count) const;
    void add_slots(const std::vector<std::uint64_t>& made) const noexcept;

    Shard& shard_;
  };
  [[nodiscard]] Locked lock(std::chrono::nanoseconds longest = longest_wait) { return Locked{*this, longest}; }

  /// Calls `copy(elements)` for the weights, number 0, or a slot, without the lock, and returns the version that was copied. Returns
  /// nothing if the elements have changed meanwhile, so that the copy may have parts of several versions. Throws StoreError if the
  /// shard is gone.
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
  /// Whether it got the mutex, so that it must be unlocked.
  [[nodiscard]] bool lock_mutex(std::chrono::nanoseconds longest) const noexcept;
  /// The offset of a new array.
  [[nodiscard]] std::uint64_t zeros() const;
  void release(std::span<const std::uint64_t> arrays) const noexcept;

  const std::shared_ptr<StoreMemory> memory_;
  SharedShard found_;
  const bool is_own_;
  const std::size_t elements_;
};

}  // namespace dist::server

#ifndef DIST_COMPILED
#include <dist/server/shard.ipp>
#endif
