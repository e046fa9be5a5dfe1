#pragma once

#include <dist/core/algorithms.hpp>
#include <dist/core/text.hpp>
#include <dist/server/registry.hpp>
#include <dist/server/update.hpp>
#include <dist/server/wire.hpp>

namespace dist::server {

[[gnu::cold]] DIST_INLINE void CachedVariableSpec::write_to(ArchiveWriter& archive) const {
  archive.put(name).put(shape).put(type).put(array).put(shards);
}
[[gnu::cold]] DIST_INLINE CachedVariableSpec CachedVariableSpec::read_from(ArchiveReader& archive) {
  return {archive.get<std::string>(), archive.get<Shape>(), archive.get<io::ElementType>(),
          archive.get<std::uint32_t>(), archive.get<std::vector<CachedShard>>()};
}

}  // namespace dist::server

namespace dist::server::detail {

DIST_INLINE void Message::lend(rpc::Chunk piece) {
  if (!piece.empty()) lent_.push_back({archive_.content().size(), piece});
}
DIST_INLINE rpc::ChunkList Message::pieces() const {
  rpc::ChunkList all;
  std::size_t begin = 0;
  const rpc::Chunk own = archive_.content();
  for (const auto& [at, piece] : lent_) {
    if (at > begin) all.push_back(own.subspan(begin, at - begin));
    all.push_back(piece);
    begin = at;
  }
  if (begin < own.size()) all.push_back(own.subspan(begin));
  return all;
}

DIST_INLINE void encode(std::span<const PushPart> parts, Message& message) {
  message.archive().put(static_cast<std::uint32_t>(parts.size()));
  for (const PushPart& part : parts) {
    message.archive().put(PushHead{part.shard, part.form, part.rows.size(), part.values.size(), part.options});
    part.update->write(message.archive());
    message.lend(std::as_bytes(part.rows));
    part.values.use([&](BytesList values) {
      for (const Bytes piece : values)
        if (part.values.is_copy())
          message.archive().put_bytes(piece.data(), piece.size());
        else
          message.lend(piece);
    });
  }
}
DIST_INLINE void encode(std::span<const PullPart> parts, Message& message) {
  message.archive().put(static_cast<std::uint32_t>(parts.size()));
  for (const PullPart& part : parts) {
    message.archive().put(PullHead{part.shard, part.type, part.all, part.rows.size(), part.options});
    message.lend(std::as_bytes(part.rows));
  }
}

[[gnu::cold]] DIST_INLINE StoreError malformed(const ArchiveError& error) {
  return {Problem::malformed, "A server received a malformed request", error.what(),
          "Start all tasks of the job from one build"};
}
DIST_INLINE void require_known(io::ElementType type) {
  if (type > io::ElementType::f64)
    throw ArchiveError("A request has an unknown element type", concat("number ", static_cast<unsigned>(type)),
                       "Start all processes of the job from one build of the program");
}

/// Reads the number of parts. Throws ArchiveError if the remaining bytes are too few for this number.
template <class Head>
[[nodiscard]] std::size_t counted(ArchiveReader& request) {
  const auto count = request.get<std::uint32_t>();
  if (count > request.left() / dist::detail::least_bytes<Head>())
    dist::detail::refuse_long_list("A request", "list of parts", count, request.left());
  return count;
}
inline std::vector<std::int64_t> get_indices(ArchiveReader& request, std::uint64_t count) {
  if (count > request.left() / sizeof(std::int64_t))
    dist::detail::refuse_long_list("A request", "list of indices", count, request.left());
  std::vector<std::int64_t> rows(static_cast<std::size_t>(count));
  request.get_bytes(std::as_writable_bytes(std::span{rows}));
  return rows;
}

DIST_INLINE DecodedPushes::DecodedPushes(ArchiveReader& request) {
  const std::size_t count = counted<PushHead>(request);
  memory_.reserve(count);
  parts_.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    const auto head = request.get<PushHead>();
    PartMemory& memory = memory_.emplace_back();
    memory.update = get_update(request);
    memory.rows = get_indices(request, head.rows);
    memory.values = request.get_pieces(head.bytes);
    if (head.form > PushEncoding::rows_summed ||
        ((head.form == PushEncoding::dense || head.form == PushEncoding::uniform) && head.rows != 0))
      throw ArchiveError("A push has an unknown form", concat("number ", static_cast<unsigned>(head.form)),
                         "Start all processes of the job from one build of the program");
    parts_.push_back(
        {head.shard, head.form, head.options, &*memory.update, memory.rows, ValueBytes{BytesList{memory.values}}});
  }
  request.expect_end();
}
DIST_INLINE DecodedPulls::DecodedPulls(ArchiveReader& request) {
  const std::size_t count = counted<PullHead>(request);
  rows_.reserve(count);
  parts_.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    const auto head = request.get<PullHead>();
    require_known(head.type);
    rows_.push_back(get_indices(request, head.rows));
    parts_.push_back({head.shard, head.type, head.options, head.all, rows_.back()});
  }
  request.expect_end();
}

DIST_INLINE PullReply::PullReply(std::span<const PullPart> parts)
    : parts_(parts), head_size_([&] {
        ArchiveWriter head;
        head.put(Problem{}).put(std::uint64_t{0}).put(std::vector<PulledShardHeader>(parts.size()));
        return head.content().size();
      }()) {}

DIST_INLINE void PullReply::take(rpc::Chunk bytes) noexcept {
  if (bytes.empty()) return;
  constexpr std::size_t longest_refusal = std::size_t{1} << 16;
  const bool refused = (head_.empty() ? bytes : rpc::Chunk{head_}).front() != std::byte{};
  if (const std::size_t more = (refused ? longest_refusal : head_size_) - head_.size(); more != 0) {
    const rpc::Chunk part = bytes.first(std::min(bytes.size(), more));
    head_.insert(head_.end(), part.begin(), part.end());
    bytes = bytes.subspan(part.size());
    if (!refused && part.size() == more) find_rooms();
  }
  while (!bytes.empty() && at_ != rooms_.size()) {
    std::span<std::byte>& room = rooms_[at_];
    const rpc::Chunk part = bytes.first(std::min(bytes.size(), room.size()));
    std::copy(part.begin(), part.end(), room.begin());
    room = room.subspan(part.size());
    bytes = bytes.subspan(part.size());
    if (room.empty()) ++at_;
  }
  surplus_ += bytes.size();
}
DIST_INLINE void PullReply::find_rooms() {
  try {
    ArchiveReader reader{rpc::Chunk{head_}, "A reply"};
    static_cast<void>(reader.get<Problem>());
    static_cast<void>(reader.get<std::uint64_t>());
    const auto seen = reader.get<std::vector<PulledShardHeader>>();
    if (seen.size() != parts_.size()) return;  // `versions` reports it
    for (std::size_t i = 0; i < seen.size(); ++i) {
      if (seen[i].version == parts_[i].options.known && seen[i].bytes == 0) continue;
      require_room(parts_[i], seen[i].bytes);
      if (!parts_[i].to.empty()) rooms_.push_back(parts_[i].to);
    }
  } catch (...) {
    failure_ = std::current_exception();
  }
}
DIST_INLINE std::vector<std::uint64_t> PullReply::versions(ArchiveReader& head) const {
  const auto seen = head.get<std::vector<PulledShardHeader>>();
  if (seen.size() != parts_.size())
    throw ArchiveError("A reply is for another request", concat(seen.size(), " shards, not ", parts_.size()),
                       "Start all tasks of the job from one build");
  if (failure_ != nullptr) std::rethrow_exception(failure_);
  if (at_ != rooms_.size()) dist::detail::refuse_short_archive("A reply", "elements", rooms_[at_].size(), 0);
  if (surplus_ != 0) dist::detail::refuse_long_archive("A reply", surplus_);
  std::vector<std::uint64_t> versions;
  for (const PulledShardHeader& of_shard : seen) versions.push_back(of_shard.version);
  return versions;
}

}  // namespace dist::server::detail
