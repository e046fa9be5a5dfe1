#pragma once

#include <dist/core/text.hpp>
#include <dist/server/requests.hpp>

namespace dist::server::detail {

DIST_INLINE std::byte* UpdateArena::take(std::size_t size) {
  if (left_ < size) {
    left_ = std::max(size, blocks_.empty() ? size : std::size_t{4096});
    blocks_.push_back(std::make_unique<std::byte[]>(left_));
    next_ = blocks_.back().get();
  }
  std::byte* const at = next_;
  next_ += size;
  left_ -= size;
  return at;
}

DIST_INLINE void require_version_of_bound(ShardId shard, const PushOptions& options) {
  if (options.version == unknown_version && options.max_staleness != any_staleness)
    throw InvalidArgument(concat("A push to shard ", shard, " cannot be refused for its staleness"),
                          "it does not say from which version it comes",
                          "Give the version that was pulled, or no bound");
}

}  // namespace dist::server::detail
