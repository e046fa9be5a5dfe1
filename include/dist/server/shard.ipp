#pragma once

#include <new>
#include <utility>
#include <vector>

#include <dist/core/text.hpp>
#include <dist/server/error.hpp>
#include <dist/server/shard.hpp>

namespace dist::server {

DIST_INLINE Shard::Shard(ShardSpec spec, io::ElementType type)
    : spec_(std::move(spec)), type_(type), elements_(elements_of(spec_)), weights_(zeros()) {}

DIST_INLINE std::size_t Shard::elements_of(const ShardSpec& spec) {
  std::size_t elements = 0;
  if (__builtin_mul_overflow(spec.rows, spec.row_size, &elements))
    throw StoreError(Problem::no_memory, text(to_string(spec), " is too large"),
                     text(spec.rows, " rows of ", spec.row_size, " elements"), "Give the shape of an array");
  return elements;
}

DIST_INLINE AlignedBuffer<std::byte> Shard::zeros() const {
  std::size_t bytes = 0;
  try {
    if (!__builtin_mul_overflow(elements_, io::bytes_of(type_), &bytes)) return AlignedBuffer<std::byte>(bytes);
  } catch (const std::bad_alloc&) {
  }
  throw StoreError(Problem::no_memory, text(to_string(spec_), " has no memory"),
                   text(elements_, " elements of ", io::to_string(type_), " are more than the server's system gives"),
                   "Divide the variable among more parameter servers");
}

DIST_INLINE ShardMemory Shard::Locked::memory(std::size_t first, std::size_t count) const {
  ShardMemory memory{shard_.type_, shard_.elements_, static_cast<std::size_t>(shard_.spec_.row_size),
                     shard_.weights_.data()};
  for (std::size_t slot = first; slot < first + count; ++slot) memory.slots.push_back(shard_.slots_[slot].data());
  return memory;
}
DIST_INLINE std::span<std::byte> Shard::Locked::array(std::size_t number) const {
  AlignedBuffer<std::byte>& buffer = number == 0 ? shard_.weights_ : shard_.slots_[number - 1];
  return {buffer.data(), buffer.size()};
}
DIST_INLINE void Shard::Locked::count_push(std::uint64_t behind, bool known) noexcept {
  if (known) shard_.staleness_.count(behind);
  shard_.version_.fetch_add(1, std::memory_order_acq_rel);
}
DIST_INLINE void Shard::Locked::require_slots_before(std::size_t first) const {
  if (first > shard_.slots_.size())
    throw StoreError(Problem::wrong_slot, text(to_string(shard_.spec_), " cannot get slot ", first),
                     text("it has ", shard_.slots_.size()), "Number slots from 0, without gaps");
}
DIST_INLINE void Shard::Locked::add_slots(std::vector<AlignedBuffer<std::byte>> made) const {
  shard_.slots_.reserve(shard_.slots_.size() + made.size());  // after this, nothing throws
  for (AlignedBuffer<std::byte>& slot : made) shard_.slots_.push_back(std::move(slot));
  shard_.slot_count_.store(shard_.slots_.size(), std::memory_order_release);
}

}  // namespace dist::server
