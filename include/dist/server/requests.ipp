#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <dist/core/algorithms.hpp>
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
DIST_INLINE std::span<std::byte> PullRequest::room_for(std::size_t number, const detail::PullSeen& seen) const {
  const Part& part = parts_[number];
  if (seen.version == part.known && seen.bytes == 0) return {};
  require_room(number, seen.bytes);
  return part.to;
}

namespace detail {

DIST_INLINE PullReply::PullReply(const PullRequest& request)
    : request_(request), head_size_([&] {
        ArchiveWriter head;
        head.put(Problem{}).put(std::uint64_t{0}).put(std::vector<PullSeen>(request.size()));
        return head.content().size();
      }()) {}

DIST_INLINE void PullReply::take(rpc::Piece bytes) noexcept {
  if (bytes.empty()) return;
  constexpr std::size_t longest_refusal = std::size_t{1} << 16;
  const bool refused = (head_.empty() ? bytes : rpc::Piece{head_}).front() != std::byte{};
  if (const std::size_t more = (refused ? longest_refusal : head_size_) - head_.size(); more != 0) {
    const rpc::Piece part = bytes.first(std::min(bytes.size(), more));
    head_.insert(head_.end(), part.begin(), part.end());
    bytes = bytes.subspan(part.size());
    if (!refused && part.size() == more) find_rooms();
  }
  while (!bytes.empty() && at_ != rooms_.size()) {
    std::span<std::byte>& room = rooms_[at_];
    const rpc::Piece part = bytes.first(std::min(bytes.size(), room.size()));
    std::copy(part.begin(), part.end(), room.begin());
    room = room.subspan(part.size());
    bytes = bytes.subspan(part.size());
    if (room.empty()) ++at_;
  }
  surplus_ += bytes.size();
}
DIST_INLINE void PullReply::find_rooms() {
  try {
    ArchiveReader reader{rpc::Piece{head_}, "A reply"};
    static_cast<void>(reader.get<Problem>());
    static_cast<void>(reader.get<std::uint64_t>());
    const auto seen = reader.get<std::vector<PullSeen>>();
    if (seen.size() != request_.size()) return;  // as `versions` says
    for (std::size_t number = 0; number < seen.size(); ++number)
      if (const std::span<std::byte> room = request_.room_for(number, seen[number]); !room.empty())
        rooms_.push_back(room);
  } catch (...) {
    failure_ = std::current_exception();
  }
}
DIST_INLINE std::vector<std::uint64_t> PullReply::versions(ArchiveReader& head) const {
  const auto seen = head.get<std::vector<PullSeen>>();
  if (seen.size() != request_.size())
    throw ArchiveError("A reply is for another request", text(seen.size(), " shards, not ", request_.size()),
                       "Start all tasks of the job from one build");
  if (failure_ != nullptr) std::rethrow_exception(failure_);
  if (at_ != rooms_.size()) dist::detail::refuse_short_archive("A reply", "elements", rooms_[at_].size(), 0);
  if (surplus_ != 0) dist::detail::refuse_long_archive("A reply", surplus_);
  std::vector<std::uint64_t> versions;
  for (const PullSeen& of_shard : seen) versions.push_back(of_shard.version);
  return versions;
}

}  // namespace detail

}  // namespace dist::server
