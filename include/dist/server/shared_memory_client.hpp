#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <dist/core/config.hpp>
#include <dist/core/functions.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/server/parts.hpp>
#include <dist/server/shard_spec.hpp>
#include <dist/server/store_memory_handle.hpp>

namespace dist::server {

/// A store whose memory this process reaches: a store of its own, or one of another process of this machine that shares its
/// memory. Whoever pushes or pulls does the server's work itself: nothing is sent, a push is applied once, and a pull copies
/// once. All processes run the same program, so each of them can apply every update. Thread-safe.
class SharedMemoryClient {
 public:
  /// Asks the store for a shard, by a message.
  using Find = dist::detail::UniqueFunction<SharedShard, ShardId>;

  /// The store of that incarnation at `place`, or nothing if this process does not reach it.
  [[nodiscard]] static std::optional<SharedMemoryClient> reach(const StoreMemoryHandle& place,
                                                               std::uint64_t incarnation, SharedMemoryAccess access,
                                                               Find find);

  /// Whether the store exists, and its process has not ended since a millisecond ago.
  [[nodiscard]] bool is_open() const noexcept;
  /// With SharedMemoryAccess::write: applies a push to one shard after another, and says what became of each. Throws StoreError,
  /// and what `find` throws.
  [[nodiscard]] std::vector<Pushed> push(std::span<const detail::PushPart> parts) const;
  [[nodiscard]] Pushed push(const detail::PushPart& part) const;
  /// Copies what the parts name to where it goes, and says which version each shard had; or returns nothing if a shard that is
  /// read without its lock changes too often. Throws StoreError, and what `find` throws.
  [[nodiscard]] std::optional<std::vector<std::uint64_t>> pull(std::span<const detail::PullPart> parts) const;
  [[nodiscard]] std::optional<std::uint64_t> pull(const detail::PullPart& part) const;

 private:
  [[nodiscard]] detail::FoundPull find(const detail::PullPart& part) const;
  [[nodiscard]] std::optional<std::uint64_t> copy(const detail::PullPart& part, const detail::FoundPull& found) const;

  /// The process of another store.
  struct Watched;

  SharedMemoryClient(std::shared_ptr<ShardTable> shards, std::shared_ptr<Watched> watched, bool may_write);

  std::shared_ptr<ShardTable> shards_;
  std::shared_ptr<Watched> watched_;
  bool may_write_;
};

}  // namespace dist::server

#ifndef DIST_COMPILED
#include <dist/server/shared_memory_client.ipp>
#endif
