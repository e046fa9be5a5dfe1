#pragma once

#include <cstddef>
#include <mutex>
#include <utility>

#include <dist/comm/health/peer_health.hpp>  // ProcessWatch
#include <dist/server/archive.hpp>
#include <dist/server/near_store.hpp>
#include <dist/server/shard_parts.hpp>
#include <dist/server/shard_table.hpp>
#include <dist/server/store_memory.hpp>

namespace dist::server {

struct NearStore::Watched {
  [[nodiscard]] bool ended() {
    const std::lock_guard lock{mutex};
    return process.ended();
  }

  std::mutex mutex;
  dist::detail::ProcessWatch process;
};

DIST_INLINE NearStore::NearStore(std::shared_ptr<ShardTable> shards, std::shared_ptr<Watched> watched)
    : shards_(std::move(shards)), watched_(std::move(watched)) {}

DIST_INLINE std::optional<NearStore> NearStore::reach(const StorePlace& place, std::uint64_t incarnation,
                                                      NearAccess access, Find find) {
  if (std::shared_ptr<ShardTable> own = ShardTable::of_store(incarnation)) return NearStore{std::move(own)};
  const bool only_to_read = access == NearAccess::read;
  // Before the memory is attached, which fails if another process has the number by then.
  std::shared_ptr<Watched> watched;
  if (only_to_read) watched.reset(new Watched{{}, dist::detail::ProcessWatch{place.process}});
  std::shared_ptr<StoreMemory> memory = StoreMemory::attach(place, incarnation, only_to_read);
  if (!memory) return std::nullopt;
  return NearStore{std::make_shared<ShardTable>(std::move(memory), std::move(find)), std::move(watched)};
}

DIST_INLINE bool NearStore::is_open() const noexcept {
  return shards_->memory()->is_open() && !(watched_ && watched_->ended());
}

DIST_INLINE std::vector<Pushed> NearStore::push(const PushRequest& request) const {
  const rpc::PieceList pieces = request.pieces();
  ArchiveReader reader{pieces, "A request"};
  try {
    return detail::apply_all(detail::get_push_parts(reader, request.size(), *shards_));
  } catch (const ArchiveError& error) {
    throw detail::malformed(error);
  }
}

DIST_INLINE std::optional<std::vector<std::uint64_t>> NearStore::pull(const PullRequest& request) const {
  const rpc::PieceList pieces = request.pieces();
  ArchiveReader reader{pieces, "A request"};
  try {
    const std::vector<detail::PullPart> parts = detail::get_pull_parts(reader, request.size(), *shards_);
    for (std::size_t i = 0; i < parts.size(); ++i)
      if (!parts[i].is_known) request.require_room(i, parts[i].bytes);
    std::vector<std::uint64_t> versions;
    versions.reserve(parts.size());
    for (std::size_t i = 0; i < parts.size(); ++i) {
      std::byte* const to = request.room(i).data();
      const auto version = watched_ ? detail::copy_without_lock(parts[i], to) : detail::copy(parts[i], to);
      if (!version) return std::nullopt;
      versions.push_back(*version);
    }
    return versions;
  } catch (const ArchiveError& error) {
    throw detail::malformed(error);
  }
}

}  // namespace dist::server
