#pragma once

#include <unistd.h>

#include <new>
#include <utility>

#include <dist/comm/health/peer_health.hpp>  // process_space
#include <dist/server/store_memory.hpp>

namespace dist::server {

DIST_INLINE StoreMemory::StoreMemory(Reach reach, std::uint64_t incarnation) : process_(getpid()) {
  const std::size_t bytes = Arena::largest_reservation();
  if (reach == Reach::machine && bytes <= SharedMemory::largest()) try {
      shared_.emplace(bytes);
    } catch (const OutOfMemory&) {  // other processes send messages
    }
  if (shared_)
    arena_.emplace(std::size_t{1}, std::span{shared_->data(), shared_->size()});
  else
    arena_.emplace(std::size_t{1});
  base_ = arena_->at(0, 0);
  ::new (static_cast<void*>(at(allocate(sizeof(Header))))) Header{incarnation};
}
DIST_INLINE StoreMemory::StoreMemory(SharedMemory attached) noexcept
    : process_(getpid()), shared_(std::move(attached)), base_(shared_->data()) {}

[[gnu::cold]] DIST_INLINE std::shared_ptr<StoreMemory> StoreMemory::attach(const StoreMemoryHandle& place,
                                                                           std::uint64_t incarnation,
                                                                           bool only_to_read) {
  const std::uint64_t own_space = process_space();
  if (own_space == 0 || place.process_space != own_space || place.descriptor < 0 || place.bytes < sizeof(Header))
    return nullptr;
  std::optional<SharedMemory> memory =
      SharedMemory::attach({place.process, place.descriptor, static_cast<std::size_t>(place.bytes)}, only_to_read);
  if (!memory) return nullptr;
  std::shared_ptr<StoreMemory> attached{new StoreMemory{std::move(*memory)}};
  return attached->header().store.load(std::memory_order_acquire) == incarnation ? attached : nullptr;
}

[[gnu::cold]] DIST_INLINE StoreMemoryHandle StoreMemory::place() const {
  StoreMemoryHandle place{process_space(), process_};
  if (shared_) {
    place.descriptor = shared_->name().descriptor;
    place.bytes = shared_->size();
  }
  return place;
}

[[gnu::cold]] DIST_INLINE std::uint64_t StoreMemory::take_state() {
  constexpr std::size_t together = 8;
  const std::lock_guard lock{mutex_};
  if (free_states_.empty()) {
    free_states_.reserve(free_states_.capacity() + together);  // room for all of them
    const std::uint64_t first = allocate(together * sizeof(ShardState));
    for (std::size_t i = together; i-- > 0;) {
      const std::uint64_t offset = first + i * sizeof(ShardState);
      ::new (static_cast<void*>(at(offset))) ShardState;
      free_states_.push_back(offset);
    }
  }
  const std::uint64_t taken = free_states_.back();
  free_states_.pop_back();
  return taken;
}
[[gnu::cold]] DIST_INLINE void StoreMemory::give_back_state(std::uint64_t offset) noexcept {
  const std::lock_guard lock{mutex_};
  free_states_.push_back(offset);
}

}  // namespace dist::server
