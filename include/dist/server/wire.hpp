/// Requests to a parameter server and its replies, in archives; elements and the indices of rows lie behind what says how many
/// there are, as in memory, so that they are sent from where they lie.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>
#include <vector>

#include <dist/core/config.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/core/short_list.hpp>
#include <dist/io/element_type.hpp>
#include <dist/rpc/rpc.hpp>
#include <dist/server/archive.hpp>
#include <dist/server/error.hpp>
#include <dist/server/parts.hpp>
#include <dist/server/shard_spec.hpp>

namespace dist::server::detail {

/// Before every request but the greeting.
struct RequestHeader {
  std::uint64_t store = 0;    ///< the incarnation of the server's variables
  std::uint64_t client = 0;   ///< of who sends it, a random number
  std::uint64_t ordinal = 0;  ///< of what it changes, from 1; 0 where it changes nothing
};

/// Before what is pushed to one shard: then the update, the indices of the rows and the values.
struct PushHead {
  ShardId shard = 0;
  PushEncoding form = PushEncoding::dense;
  std::uint64_t rows = 0;   ///< 0 in dense and uniform form
  std::uint64_t bytes = 0;  ///< of the values
  PushOptions options;
};

/// Before what is pulled of one shard: then the indices of the rows.
struct PullHead {
  ShardId shard = 0;
  io::ElementType type = io::ElementType::f32;
  bool all = true;
  std::uint64_t rows = 0;  ///< 0 for all
  PullOptions options;
};

/// What is said before the elements of a pull, of each shard.
struct PulledShardHeader {
  std::uint64_t version = 0;  ///< of the shard when it was copied
  std::uint64_t bytes = 0;    ///< of its elements; none where the version is the one that was known
};

enum class InitialValue : std::uint8_t { value, elements, function };

/// Before the initial values of a shard: an element, all elements, or the number of a function and its functor.
struct CreateHead {
  ShardSpec spec;
  io::ElementType type = io::ElementType::f32;
  InitialValue initial = InitialValue::value;
  std::uint64_t bytes = 0;  ///< of the values
};

/// Bytes, and between them memory of others.
class Message {
 public:
  [[nodiscard]] ArchiveWriter& archive() { return archive_; }
  void lend(rpc::Chunk piece);
  /// Pieces that are valid as long as this stays where it is and nothing else is put.
  [[nodiscard]] rpc::ChunkList pieces() const;

 private:
  struct Borrowed {
    std::size_t at = 0;  ///< behind so many bytes of the archive
    rpc::Chunk piece;
  };

  ArchiveWriter archive_;
  dist::detail::ShortList<Borrowed, 2> lent_;
};

/// Puts how many parts there are, and the parts. Rows, and values that are no copies, are lent.
void encode(std::span<const PushPart> parts, Message& message);
void encode(std::span<const PullPart> parts, Message& message);

/// The parts of a push in a message of others, whose bytes stay where they are.
class DecodedPushes {
 public:
  /// Reads the rest of a request. Throws ArchiveError.
  explicit DecodedPushes(ArchiveReader& request);

  [[nodiscard]] std::span<const PushPart> parts() const noexcept { return parts_; }

 private:
  std::vector<std::unique_ptr<ElementUpdateBase>> updates_;
  std::vector<std::int64_t> rows_;  ///< of all parts
  std::vector<rpc::Chunk> values_;  ///< of all parts
  std::vector<PushPart> parts_;
};
/// The same of a pull, whose parts have no place to go to.
class DecodedPulls {
 public:
  explicit DecodedPulls(ArchiveReader& request);

  [[nodiscard]] std::span<const PullPart> parts() const noexcept { return parts_; }

 private:
  std::vector<std::int64_t> rows_;  ///< of all parts
  std::vector<PullPart> parts_;
};

/// The error of a client whose request cannot be read.
[[nodiscard]] StoreError malformed(const ArchiveError& error);
/// Throws ArchiveError for a number that names no type.
void require_known(io::ElementType type);

/// The reply to a pull while it comes: what stands before the elements, and the elements, which go where the parts say.
class PullReply final : public rpc::ReplySink {
 public:
  /// The parts are lent.
  explicit PullReply(std::span<const PullPart> parts);
  void take(rpc::Chunk bytes) noexcept override;

  /// What stands before the elements, or why there are none.
  [[nodiscard]] rpc::Chunk head() const noexcept { return head_; }
  /// When the reply is whole, behind what all replies begin with: the version of each shard. Throws StoreError where its elements
  /// had no room, and ArchiveError for the reply to another request.
  [[nodiscard]] std::vector<std::uint64_t> versions(ArchiveReader& head) const;

 private:
  /// Reads the head, which is whole.
  void find_rooms();

  const std::span<const PullPart> parts_;
  const std::size_t head_size_;
  std::vector<std::byte> head_;
  std::vector<std::span<std::byte>> rooms_;  ///< in their order, what is left of each
  std::size_t at_ = 0;
  std::uint64_t surplus_ = 0;  ///< bytes behind the elements
  std::exception_ptr failure_;
};

}  // namespace dist::server::detail

#ifndef DIST_COMPILED
#include <dist/server/wire.ipp>
#endif
