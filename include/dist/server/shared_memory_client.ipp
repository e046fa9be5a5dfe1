#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <mutex>
#include <utility>

#include <dist/comm/health/peer_health.hpp>  // ProcessWatch
#include <dist/device/wait.hpp>
#include <dist/server/shard.hpp>
#include <dist/server/shared_memory_client.hpp>
#include <dist/server/store_memory.hpp>

namespace dist::server {

struct SharedMemoryClient::Watched {
  explicit Watched(pid_t number) : process(number) {}

  /// Queries the system at most once per millisecond, because a query takes longer than a small push.
  [[nodiscard]] bool ended() {
    const std::int64_t now = dist::detail::monotonic_nanoseconds();
    if (now < next_look.load(std::memory_order_relaxed)) return false;
    const std::lock_guard lock{mutex};
    if (process.ended()) return true;
    next_look.store(now + 1'000'000, std::memory_order_relaxed);
    return false;
  }

  std::atomic<std::int64_t> next_look{0};
  std::mutex mutex;
  dist::detail::ProcessWatch process;
};

DIST_INLINE SharedMemoryClient::SharedMemoryClient(std::shared_ptr<ShardTable> shards, std::shared_ptr<Watched> watched,
                                                   bool may_write)
    : shards_(std::move(shards)), watched_(std::move(watched)), may_write_(may_write) {}

[[gnu::cold]] DIST_INLINE std::optional<SharedMemoryClient> SharedMemoryClient::reach(const StoreMemoryHandle& place,
                                                                                      std::uint64_t incarnation,
                                                                                      SharedMemoryAccess access,
                                                                                      Find find) {
  const bool may_write = access == SharedMemoryAccess::write;
  if (std::shared_ptr<ShardTable> own = ShardTable::of_store(incarnation))
    return SharedMemoryClient{std::move(own), nullptr, may_write};
  // Must precede `attach`, which fails if another process has got the process id in the meantime.
  auto watched = std::make_shared<Watched>(place.process);
  std::shared_ptr<StoreMemory> memory = StoreMemory::attach(place, incarnation, !may_write);
  if (!memory) return std::nullopt;
  return SharedMemoryClient{std::make_shared<ShardTable>(std::move(memory), std::move(find)), std::move(watched),
                            may_write};
}

DIST_INLINE bool SharedMemoryClient::is_open() const noexcept {
  return shards_->memory()->is_open() && !(watched_ && watched_->ended());
}

DIST_INLINE detail::FoundPull SharedMemoryClient::find(const detail::PullPart& part) const {
  detail::FoundPull found = detail::find(part, *shards_);
  if (!found.is_known) detail::require_room(part, found.bytes);
  return found;
}
DIST_INLINE std::optional<std::uint64_t> SharedMemoryClient::copy(const detail::PullPart& part,
                                                                  const detail::FoundPull& found) const {
  if (watched_ && !may_write_) return detail::copy_without_lock(part, found, part.to.data());
  return detail::copy(part, found, part.to.data());
}
DIST_INLINE std::optional<std::uint64_t> SharedMemoryClient::pull(const detail::PullPart& part) const {
  return copy(part, find(part));
}
DIST_INLINE std::vector<Pushed> SharedMemoryClient::push(std::span<const detail::PushPart> parts) const {
  return detail::apply(parts, *shards_);
}
DIST_INLINE Pushed SharedMemoryClient::push(const detail::PushPart& part) const {
  return detail::apply(part, *shards_);
}
DIST_INLINE std::optional<std::vector<std::uint64_t>> SharedMemoryClient::pull(
    std::span<const detail::PullPart> parts) const {
  std::vector<detail::FoundPull> found;
  found.reserve(parts.size());
  for (const detail::PullPart& part : parts) found.push_back(find(part));
  std::vector<std::uint64_t> versions;
  versions.reserve(parts.size());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::optional<std::uint64_t> version = copy(parts[i], found[i]);
    if (!version) return std::nullopt;
    versions.push_back(*version);
  }
  return versions;
}

}  // namespace dist::server
