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

namespace dist::server {

/// Access to the memory of a store in this process, or in another process on this machine that shares it. The caller
/// pushes and pulls itself, without messages, because all processes run the same program and can apply every update.
/// Thread-safe.
class SharedMemoryClient {
 public:
  /// Requests a shard from the store by a message.
  using Find = dist::detail::UniqueFunction<SharedShard, ShardId>;

  /// Returns the store with that incarnation, or nothing if its memory cannot be mapped.
  [[nodiscard]] static std::optional<SharedMemoryClient> reach(const StoreMemoryHandle& place,
                                                               std::uint64_t incarnation, SharedMemoryAccess access,
                                                               Find find);

  /// True if the store exists. May miss the end of its process for up to a millisecond.
  [[nodiscard]] bool is_open() const noexcept;
  /// Pushes to one shard after another. Requires SharedMemoryAccess::write. Throws StoreError, and the errors of
  /// `find`.
  [[nodiscard]] std::vector<Pushed> push(std::span<const detail::PushPart> parts) const;
  [[nodiscard]] Pushed push(const detail::PushPart& part) const;
  /// Copies the elements to their destinations, and returns the versions. Returns nothing if a shard read without
  /// locking changes too often. Throws StoreError, and the errors of `find`.
  [[nodiscard]] std::optional<std::vector<std::uint64_t>> pull(std::span<const detail::PullPart> parts) const;
  [[nodiscard]] std::optional<std::uint64_t> pull(const detail::PullPart& part) const;

 private:
  [[nodiscard]] detail::FoundPull find(const detail::PullPart& part) const;
  [[nodiscard]] std::optional<std::uint64_t> copy(const detail::PullPart& part, const detail::FoundPull& found) const;

  /// Watches the process of another store.
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
