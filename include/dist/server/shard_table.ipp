#pragma once

#include <dist/core/text.hpp>
#include <dist/server/error.hpp>
#include <dist/server/shard_table.hpp>

namespace dist::server {

DIST_INLINE std::shared_ptr<Shard> ShardTable::find(ShardId id) const {
  const std::lock_guard lock{mutex_};
  const auto found = shards_.find(id);
  return found == shards_.end() || found->second->is_gone() ? nullptr : found->second;
}
DIST_INLINE std::shared_ptr<Shard> ShardTable::require(ShardId id) {
  std::shared_ptr<Shard> shard = find(id);
  if (shard) return shard;
  if (!find_)
    throw StoreError(Problem::unknown_shard, concat("This server has no shard ", id),
                     "none was created, or it was dropped",
                     "Create the variable before it is used, and use it no longer than it exists");
  shard = std::make_shared<Shard>(memory_, find_(id));
  const std::lock_guard lock{mutex_};
  std::erase_if(shards_, [](const auto& entry) { return entry.second->is_gone(); });
  shards_[id] = shard;
  return shard;
}
DIST_INLINE void ShardTable::add(std::shared_ptr<Shard> shard) {
  const ShardSpec& spec = shard->spec();
  const std::lock_guard lock{mutex_};
  if (!shards_.emplace(spec.id, shard).second) refuse_second(spec);
}
DIST_INLINE void ShardTable::erase(const std::vector<ShardId>& ids) {
  std::vector<std::shared_ptr<Shard>> erased;  // which may wait for those who use them: not under the lock
  const std::lock_guard lock{mutex_};
  for (const ShardId id : ids)
    if (auto node = shards_.extract(id)) erased.push_back(std::move(node.mapped()));
}
DIST_INLINE std::vector<ShardInfo> ShardTable::list() const {
  std::vector<ShardInfo> all;
  const std::lock_guard lock{mutex_};
  for (const auto& [id, shard] : shards_)
    all.push_back({shard->spec(), shard->type(), shard->slots(), shard->version()});
  return all;
}
DIST_INLINE ShardTable::Published& ShardTable::published() {
  static Published published;
  return published;
}
DIST_INLINE void ShardTable::publish(std::uint64_t store, const std::shared_ptr<ShardTable>& shards) {
  const std::lock_guard lock{published().mutex};
  std::erase_if(published().tables, [](const auto& entry) { return entry.second.expired(); });
  published().tables[store] = shards;
}
DIST_INLINE std::shared_ptr<ShardTable> ShardTable::of_store(std::uint64_t store) {
  const std::lock_guard lock{published().mutex};
  const auto found = published().tables.find(store);
  return found == published().tables.end() ? nullptr : found->second.lock();
}
DIST_INLINE void ShardTable::refuse_second(const ShardSpec& spec) {
  throw StoreError(Problem::shard_exists, concat(to_string(spec), " cannot be created"),
                   "the server has a shard of this number", "Drop that one first, or take it over");
}

}  // namespace dist::server
