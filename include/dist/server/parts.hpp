/// What a request asks of each shard, and how that is done, by the store or by a client that reaches the store's memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <dist/core/config.hpp>
#include <dist/core/pointers.hpp>
#include <dist/io/element_type.hpp>
#include <dist/rpc/rpc.hpp>
#include <dist/server/archive.hpp>
#include <dist/server/error.hpp>
#include <dist/server/requests.hpp>
#include <dist/server/shard.hpp>
#include <dist/server/shard_table.hpp>
#include <dist/server/update.hpp>

namespace dist::server::detail {

/// The error of a client whose request cannot be read.
[[nodiscard]] StoreError malformed(const ArchiveError& error);
/// Throws ArchiveError for a number that names no type.
void require_known(io::ElementType type);
/// Throws StoreError for bytes that are no values of the shard's type: a bool is 0 or 1.
void require_values(const Shard& shard, rpc::Piece bytes);

/// What is pushed to a shard.
struct PushPart {
  std::shared_ptr<Shard> shard;
  PushHead head;
  std::unique_ptr<AnyUpdate> update;
  std::vector<std::int64_t> rows;
  rpc::PieceList values;
};
/// Reads the rest of a request, which is `count` parts. Throws ArchiveError and StoreError.
[[nodiscard]] std::vector<PushPart> get_push_parts(ArchiveReader& request, std::size_t count, ShardTable& shards);
/// Applies the parts of a request, and says what became of each. If one of them cannot be applied, throws ArchiveError or
/// StoreError before anything is changed.
[[nodiscard]] std::vector<Pushed> apply_all(const std::vector<PushPart>& parts);

/// What is pulled from a shard.
struct PullPart {
  std::shared_ptr<Shard> shard;
  PullHead head;
  std::vector<std::int64_t> rows;
  bool is_known = false;  ///< the caller has the shard's elements already
  std::size_t bytes = 0;  ///< to copy
};
/// Reads the rest of a request, which is `count` parts. Throws ArchiveError and StoreError.
[[nodiscard]] std::vector<PullPart> get_pull_parts(ArchiveReader& request, std::size_t count, ShardTable& shards);
/// Copies the bytes to `to`, and returns the version of the shard.
[[nodiscard]] std::uint64_t copy(const PullPart& part, std::byte* to);
/// The same without the shard's lock. Returns nothing if the shard has changed during each attempt for 20 milliseconds.
[[nodiscard]] std::optional<std::uint64_t> copy_without_lock(const PullPart& part, std::byte* to);

}  // namespace dist::server::detail

#ifndef DIST_COMPILED
#include <dist/server/shard_parts.ipp>
#endif
