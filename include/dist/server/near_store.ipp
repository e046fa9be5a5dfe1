#pragma once

#include <cstddef>
#include <utility>

#include <dist/server/archive.hpp>
#include <dist/server/near_store.hpp>
#include <dist/server/shard_parts.hpp>
#include <dist/server/shard_table.hpp>
#include <dist/server/store_memory.hpp>

namespace dist::server {

DIST_INLINE NearStore::NearStore(std::shared_ptr<ShardTable> shards) : shards_(std::move(shards)) {}

DIST_INLINE std::optional<NearStore> NearStore::reach(const StorePlace& place, std::uint64_t incarnation, Find find) {
  if (std::shared_ptr<ShardTable> own = ShardTable::of_store(incarnation)) return NearStore{std::move(own)};
  std::shared_ptr<StoreMemory> memory = StoreMemory::attach(place, incarnation);
  if (!memory) return std::nullopt;
  return NearStore{std::make_shared<ShardTable>(std::move(memory), std::move(find))};
}

DIST_INLINE bool NearStore::is_open() const noexcept { return shards_->memory()->is_open(); }

DIST_INLINE std::vector<Pushed> NearStore::push(const PushRequest& request) const {
  const rpc::PieceList pieces = request.pieces();
  ArchiveReader reader{pieces, "A request"};
  try {
    return detail::apply_all(detail::get_push_parts(reader, request.size(), *shards_));
  } catch (const ArchiveError& error) {
    throw detail::malformed(error);
  }
}

DIST_INLINE std::vector<std::uint64_t> NearStore::pull(const PullRequest& request) const {
  const rpc::PieceList pieces = request.pieces();
  ArchiveReader reader{pieces, "A request"};
  try {
    const std::vector<detail::PullPart> parts = detail::get_pull_parts(reader, request.size(), *shards_);
    for (std::size_t i = 0; i < parts.size(); ++i)
      if (!parts[i].is_known) request.require_room(i, parts[i].bytes);
    std::vector<std::uint64_t> versions;
    versions.reserve(parts.size());
    for (std::size_t i = 0; i < parts.size(); ++i) versions.push_back(detail::copy(parts[i], request.room(i).data()));
    return versions;
  } catch (const ArchiveError& error) {
    throw detail::malformed(error);
  }
}

}  // namespace dist::server
