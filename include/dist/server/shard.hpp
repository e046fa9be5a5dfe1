#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <mutex>
#include <new>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <dist/core/aligned_buffer.hpp>
#include <dist/core/config.hpp>
#include <dist/core/text.hpp>
#include <dist/io/element_type.hpp>
#include <dist/server/error.hpp>

/// Variables that lie on parameter servers, and what their clients ask of them.
namespace dist::server {

/// The number of a shard, which whoever creates it chooses, among those of one server. Where another shard had it before, versions
/// that were said of that one mean nothing, so random numbers are best.
using ShardId = std::uint64_t;

/// The contiguous rows of a variable that one server holds.
struct ShardSpec {
  ShardId id = 0;
  std::string name;            ///< for messages: "embedding/part_1"
  std::uint64_t rows = 1;      ///< 1 for a scalar
  std::uint64_t row_size = 1;  ///< elements of a row
  std::uint64_t offset = 0;    ///< elements of the variable that come before the shard's first
};

/// Where a shard is.
struct ShardPlace {
  std::uint64_t server = 0;       ///< its number among the parameter servers
  std::uint64_t incarnation = 0;  ///< of that server, see Client
  ShardId id = 0;
  std::string name = {};  ///< as in ShardSpec
};

/// "Shard 'embedding/part_1' (number 7)"
[[nodiscard]] inline std::string to_string(const ShardSpec& spec) {
  return text("Shard ", quoted(spec.name), " (number ", spec.id, ")");
}

/// How many pushes a shard lay ahead of the values from which a gradient was computed, over all pushes that have said
/// from which, and were applied.
struct Staleness {
  std::uint64_t pushes = 0;
  std::uint64_t sum = 0;
  std::uint64_t max = 0;
  std::uint64_t refused = 0;  ///< pushes that were more stale than their PushOptions::max_staleness

  [[nodiscard]] double mean() const noexcept {
    return pushes == 0 ? 0.0 : static_cast<double>(sum) / static_cast<double>(pushes);
  }
  void add(const Staleness& others) noexcept {
    pushes += others.pushes;
    sum += others.sum;
    max = std::max(max, others.max);
    refused += others.refused;
  }
  void count(std::uint64_t of_push) noexcept {
    ++pushes;
    sum += of_push;
    max = std::max(max, of_push);
  }
  friend bool operator==(const Staleness&, const Staleness&) = default;
};

/// Where the elements of a shard lie, and those of its slots, while it is locked.
struct ShardMemory {
  io::ElementType type = io::ElementType::f32;
  std::size_t elements = 0;
  std::size_t row_size = 1;
  std::byte* weights = nullptr;
  std::vector<std::byte*> slots = {};

  /// Throws StoreError unless the elements are of type `T`.
  template <class T>
  [[nodiscard]] std::span<T> weights_as() const {
    if (type != io::element_type<T>)
      throw StoreError(Problem::wrong_type, text("An update for ", dtype_name<T>, " does not fit a shard"),
                       text("its elements are ", io::to_string(type)), "Give values of the variable's element type");
    return {reinterpret_cast<T*>(weights), elements};
  }
};

/// The elements of a shard, and the slots that optimizers keep beside them: arrays of as many elements of the same type.
/// One mutex for all of this, so that each request sees and changes a shard as a whole.
class Shard {
 public:
  /// All zeros. Throws StoreError where the system has no such memory.
  Shard(ShardSpec spec, io::ElementType type)
      : spec_(std::move(spec)), type_(type), elements_(elements_of(spec_)), weights_(zeros()) {}
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
    [[nodiscard]] ShardMemory memory(std::size_t first = 0, std::size_t count = 0) const {
      ShardMemory memory{shard_.type_, shard_.elements_, static_cast<std::size_t>(shard_.spec_.row_size),
                         shard_.weights_.data()};
      for (std::size_t slot = first; slot < first + count; ++slot) memory.slots.push_back(shard_.slots_[slot].data());
      return memory;
    }
    /// The weights for 0, then the slots.
    [[nodiscard]] std::span<std::byte> array(std::size_t number) const {
      AlignedBuffer<std::byte>& buffer = number == 0 ? shard_.weights_ : shard_.slots_[number - 1];
      return {buffer.data(), buffer.size()};
    }
    [[nodiscard]] std::uint64_t version() const noexcept { return shard_.version(); }
    [[nodiscard]] const Staleness& staleness() const noexcept { return shard_.staleness_; }
    /// Counts a push that was applied, and its staleness, if that is known.
    void count_push(std::uint64_t behind, bool known) noexcept {
      if (known) shard_.staleness_.count(behind);
      shard_.version_.fetch_add(1, std::memory_order_acq_rel);
    }
    /// Counts one that was too stale.
    void count_refusal() noexcept { ++shard_.staleness_.refused; }
    /// Sees to slots `first`, `first + 1` and so on, each filled by `fill(slot, memory)` where there was none: all of them or
    /// none. Throws StoreError where slots before the first are missing, or memory is.
    template <class Fill>
    void ensure_slots(std::size_t first, std::size_t count, Fill&& fill) const {
      if (first > shard_.slots_.size())
        throw StoreError(Problem::wrong_slot, text(to_string(shard_.spec_), " cannot get slot ", first),
                         text("it has ", shard_.slots_.size()), "Number slots from 0, without gaps");
      std::vector<AlignedBuffer<std::byte>> made;
      for (std::size_t slot = shard_.slots_.size(); slot < first + count; ++slot) {
        made.push_back(shard_.zeros());
        fill(slot - first, std::span{made.back().data(), made.back().size()});
      }
      for (AlignedBuffer<std::byte>& slot : made) shard_.slots_.push_back(std::move(slot));
      shard_.slot_count_.store(shard_.slots_.size(), std::memory_order_release);
    }

   private:
    Shard& shard_;
    std::lock_guard<std::mutex> lock_;
  };
  [[nodiscard]] Locked lock() { return Locked{*this}; }

 private:
  [[nodiscard]] static std::size_t elements_of(const ShardSpec& spec) {
    std::size_t elements = 0;
    if (__builtin_mul_overflow(spec.rows, spec.row_size, &elements))
      throw StoreError(Problem::no_memory, text(to_string(spec), " is too large"),
                       text(spec.rows, " rows of ", spec.row_size, " elements"), "Give the shape of an array");
    return elements;
  }
  [[nodiscard]] AlignedBuffer<std::byte> zeros() const {
    std::size_t bytes = 0;
    try {
      if (!__builtin_mul_overflow(elements_, io::bytes_of(type_), &bytes)) return AlignedBuffer<std::byte>(bytes);
    } catch (const std::bad_alloc&) {
    }
    throw StoreError(Problem::no_memory, text(to_string(spec_), " has no memory"),
                     text(elements_, " elements of ", io::to_string(type_), " are more than the server's system gives"),
                     "Divide the variable among more parameter servers");
  }

  const ShardSpec spec_;
  const io::ElementType type_;
  const std::size_t elements_;
  std::mutex mutex_;
  AlignedBuffer<std::byte> weights_;
  std::deque<AlignedBuffer<std::byte>> slots_;
  std::atomic<std::size_t> slot_count_{0};
  std::atomic<std::uint64_t> version_{0};
  Staleness staleness_;
};

}  // namespace dist::server
