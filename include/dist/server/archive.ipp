#pragma once

#include <dist/server/archive.hpp>

namespace dist::detail {

inline constexpr std::string_view one_program = "Start all processes of the job from one build of the program";

[[gnu::cold]] DIST_INLINE void refuse_deep_lists() {
  throw InvalidArgument("A value cannot be sent", concat("it has more than ", deepest_list, " levels of nested lists"),
                        "Send its parts in one flat list, with indices instead of nested lists");
}
[[gnu::cold]] DIST_INLINE void refuse_short_archive(std::string_view what, std::string_view type, std::uint64_t wanted,
                                                    std::uint64_t left) {
  throw ArchiveError(concat(what, " ends early"),
                     concat(wanted, " bytes of ", type, " were expected, ", left, " are left"), one_program);
}
[[gnu::cold]] DIST_INLINE void refuse_long_list(std::string_view what, std::string_view type, std::uint64_t elements,
                                                std::uint64_t left) {
  throw ArchiveError(concat(what, " declares too many elements"),
                     concat("a ", type, " with ", elements, " elements, but only ", left, " bytes are left"),
                     one_program);
}
[[gnu::cold]] DIST_INLINE void refuse_long_archive(std::string_view what, std::uint64_t left) {
  throw ArchiveError(concat(what, " is longer than its values"), concat(left, " bytes are left"), one_program);
}
[[gnu::cold]] DIST_INLINE void refuse_value(std::string_view what, std::string_view type, std::string_view why) {
  throw ArchiveError(concat(what, " contains an invalid ", type), why, one_program);
}

}  // namespace dist::detail

namespace dist {

DIST_INLINE ArchiveWriter& ArchiveWriter::put_bytes(const void* bytes, std::size_t size) {
  content_.append(static_cast<const std::byte*>(bytes), size);
  return *this;
}

DIST_INLINE void ArchiveReader::get_bytes(std::span<std::byte> to, std::string_view type) {
  if (to.size() > left_) detail::refuse_short_archive(what_, type, to.size(), left_);
  left_ -= to.size();
  while (!to.empty()) {
    const rpc::Chunk part = next(to.size());
    std::memcpy(to.data(), part.data(), part.size());
    to = to.subspan(part.size());
  }
}
DIST_INLINE rpc::Chunk ArchiveReader::next(std::uint64_t most) {
  while (piece_.empty()) {
    piece_ = pieces_.front();
    pieces_ = pieces_.subspan(1);
  }
  const rpc::Chunk part = piece_.first(static_cast<std::size_t>(std::min<std::uint64_t>(most, piece_.size())));
  piece_ = piece_.subspan(part.size());
  return part;
}
DIST_INLINE rpc::ChunkList ArchiveReader::get_pieces(std::uint64_t size) {
  if (size > left_) detail::refuse_short_archive(what_, "data", size, left_);
  left_ -= size;
  rpc::ChunkList parts;
  while (size > 0) {
    const rpc::Chunk part = next(size);
    parts.push_back(part);
    size -= part.size();
  }
  return parts;
}

DIST_INLINE std::string_view ArchiveReader::keep_text(std::string text) {
  return *texts_->emplace_back(std::make_unique<const std::string>(std::move(text)));
}
DIST_INLINE Shape ArchiveReader::read_shape() {
  const std::size_t rank = list_length<std::size_t>("dist::Shape");
  if (rank > Shape::max_rank) detail::refuse_value(what_, "dist::Shape", concat(rank, " axes"));
  std::array<std::size_t, Shape::max_rank> extents{};
  read_elements(extents.data(), rank);
  try {
    return Shape{std::span<const std::size_t>{extents.data(), rank}};
  } catch (const InvalidArgument& error) {
    detail::refuse_value(what_, "dist::Shape", error.what());
  }
}

}  // namespace dist
