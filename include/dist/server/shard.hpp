#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include <dist/core/aligned_buffer.hpp>
#include <dist/core/config.hpp>
#include <dist/io/element_type.hpp>
#include <dist/server/shard_memory.hpp>
#include <dist/server/shard_spec.hpp>

namespace dist::server {

/// The elements of a shard, and the slots that optimizers keep beside them: arrays of as many elements of the same type.
/// One mutex for all of this, so that each request sees and changes a shard as a whole.
class Shard {
 public:
  /// All zeros. Throws StoreError where the system has no such memory.
  Shard(ShardSpec spec, io::ElementType type);
  Shard(const Shard&) = delete;
  Shard& operator=(const Shard&) = delete;

  [[nodiscard]] const ShardSpec& spec() const noexcept { return spec_; }
  [[nodiscard]] io::ElementType type() const noexcept { return type_; }
  [[nodiscard]] std::size_t elements() const noexcept { return elements_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return elements_ * io::bytes_of(type_); }
  [[nodiscard]] std::size_t row_bytes() const noexcept {
    return static_cast<std::size_t>(spec_.row_size) * io::bytes_of(type_);
  }
  /// How many pushes have changed the shard.
  [[nodiscard]] std::uint64_t version() const noexcept { return version_.load(std::memory_order_acquire); }
  [[nodiscard]] std::size_t slots() const noexcept { return slot_count_.load(std::memory_order_acquire); }

  /// What is done under the lock.
  class Locked {
   public:
    explicit Locked(Shard& shard) : shard_(shard), lock_(shard.mutex_) {}

    /// The weights and `count` slots from number `first` on, which there must be.
    [[nodiscard]] ShardMemory memory(std::size_t first = 0, std::size_t count = 0) const;
    /// The weights for 0, then the slots.
    [[nodiscard]] std::span<std::byte> array(std::size_t number) const;
    [[nodiscard]] std::uint64_t version() const noexcept { return shard_.version(); }
    [[nodiscard]] const Staleness& staleness() const noexcept { return shard_.staleness_; }
    /// Counts a push that was applied, and its staleness, if that is known.
    void count_push(std::uint64_t behind, bool known) noexcept;
    /// Counts one that was too stale.
    void count_refusal() noexcept { ++shard_.staleness_.refused; }
    /// Sees to slots `first`, `first + 1` and so on, each filled by `fill(slot, memory)` where there was none: all of them or
    /// none. Throws StoreError where slots before the first are missing, or memory is.
    template <class Fill>
    void ensure_slots(std::size_t first, std::size_t count, Fill&& fill) const {
      require_slots_before(first);
      std::vector<AlignedBuffer<std::byte>> made;
      for (std::size_t slot = shard_.slots(); slot < first + count; ++slot) {
        made.push_back(shard_.zeros());
        fill(slot - first, std::span{made.back().data(), made.back().size()});
      }
      add_slots(std::move(made));
    }

   private:
    void require_slots_before(std::size_t first) const;
    void add_slots(std::vector<AlignedBuffer<std::byte>> made) const;

    Shard& shard_;
    std::lock_guard<std::mutex> lock_;
  };
  [[nodiscard]] Locked lock() { return Locked{*this}; }

 private:
  [[nodiscard]] static std::size_t elements_of(const ShardSpec& spec);
  [[nodiscard]] AlignedBuffer<std::byte> zeros() const;

  const ShardSpec spec_;
  const io::ElementType type_;
  const std::size_t elements_;
  std::mutex mutex_;
  AlignedBuffer<std::byte> weights_;
  std::vector<AlignedBuffer<std::byte>> slots_;
  std::atomic<std::size_t> slot_count_{0};
  std::atomic<std::uint64_t> version_{0};
  Staleness staleness_;
};

}  // namespace dist::server

#ifndef DIST_COMPILED
#include <dist/server/shard.ipp>
#endif
