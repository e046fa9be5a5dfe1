#pragma once

#include <dist/core/error.hpp>
#include <dist/core/text.hpp>
#include <dist/server/requests.hpp>

namespace dist::server {

namespace detail {

DIST_INLINE void Message::lend(rpc::Piece piece) {
  if (!piece.empty()) lent_.push_back({archive_.content().size(), piece});
}
DIST_INLINE rpc::PieceList Message::pieces() const {
  rpc::PieceList all;
  std::size_t begin = 0;
  const rpc::Piece own = archive_.content();
  for (const auto& [at, piece] : lent_) {
    if (at > begin) all.push_back(own.subspan(begin, at - begin));
    all.push_back(piece);
    begin = at;
  }
  if (begin < own.size()) all.push_back(own.subspan(begin));
  return all;
}

DIST_INLINE void require_whole_rows(ShardId shard, std::size_t rows, std::size_t values) {
  if (rows == 0 ? values != 0 : values % rows != 0)
    throw ShapeMismatch(text("Rows for shard ", shard, " do not fit together"),
                        text(rows, " indices and ", values, " values"), "Give one row of values for each index");
}

}  // namespace detail

DIST_INLINE void PullRequest::require_room(std::size_t number, std::uint64_t bytes) const {
  const Part& part = parts_[number];
  if (bytes != part.to.size())
    throw StoreError(Problem::wrong_size, text("A pull of shard ", part.shard, " has no room for its elements"),
                     text("they are ", bytes, " bytes, there is room for ", part.to.size()),
                     "Give memory of the size of the shard");
}
DIST_INLINE void PullRequest::take(std::size_t number, const detail::PullSeen& seen, ArchiveReader& reply) const {
  const Part& part = parts_[number];
  if (seen.version == part.known && seen.bytes == 0) return;
  require_room(number, seen.bytes);
  reply.get_bytes(part.to);
}

}  // namespace dist::server
