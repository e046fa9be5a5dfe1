#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include <dist/core/config.hpp>
#include <dist/core/functions.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/io/element_type.hpp>
#include <dist/server/shard.hpp>
#include <dist/server/shard_spec.hpp>
#include <dist/server/store_memory.hpp>
#include <dist/server/store_memory_handle.hpp>

namespace dist::server {

/// The shards in the memory of a store, by their numbers: all of them in the process of the store, and those that were used
/// in another one. Thread-safe.
class ShardTable {
 public:
  /// Asks the store for a shard. Throws StoreError if it has none of that number.
  using Find = dist::detail::UniqueFunction<SharedShard, ShardId>;

  /// The table of the store itself.
  explicit ShardTable(std::shared_ptr<StoreMemory> memory) : memory_(std::move(memory)) {}
  /// The table of another process, which asks for shards that are not in it, or that the store has dropped.
  ShardTable(std::shared_ptr<StoreMemory> memory, Find find) : memory_(std::move(memory)), find_(std::move(find)) {}
  ShardTable(const ShardTable&) = delete;
  ShardTable& operator=(const ShardTable&) = delete;

  [[nodiscard]] const std::shared_ptr<StoreMemory>& memory() const noexcept { return memory_; }

  /// Returns nullptr if the shard is not in the table.
  [[nodiscard]] std::shared_ptr<Shard> find(ShardId id) const;
  /// Throws StoreError if the store has no such shard.
  [[nodiscard]] std::shared_ptr<Shard> require(ShardId id);
  /// Throws StoreError if there is one of this number.
  void add(std::shared_ptr<Shard> shard);
  void erase(const std::vector<ShardId>& ids);
  /// In the order of their numbers.
  [[nodiscard]] std::vector<ShardInfo> list() const;

  /// Refuses a second shard of a number.
  [[noreturn]] static void refuse_second(const ShardSpec& spec);

  /// Lets this process find the table of a store by the store's incarnation.
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
  mutable std::mutex mutex_;  ///< guards the list, not the shards in it
  std::map<ShardId, std::shared_ptr<Shard>> shards_;
};

}  // namespace dist::server

#ifndef DIST_COMPILED
#include <dist/server/shard_table.ipp>
#endif
