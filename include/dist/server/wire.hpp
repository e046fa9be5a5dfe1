/// The encoding of requests to a parameter server and of its replies. Elements and row indices keep their memory
/// representation, so that they are sent without copying.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>
#include <string>
#include <vector>

#include <dist/core/config.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/core/shape.hpp>
#include <dist/core/short_list.hpp>
#include <dist/io/element_type.hpp>
#include <dist/rpc/rpc.hpp>
#include <dist/server/archive.hpp>
#include <dist/server/error.hpp>
#include <dist/server/parts.hpp>
#include <dist/server/shard_spec.hpp>

namespace dist::server {

/// A shard of a variable with a copy in this process.
struct CachedShard {
  ShardAddress place;
  std::uint64_t tensor = 0;  ///< index in the layout of the variable
  std::uint64_t begin = 0;   ///< range of its elements in the copy
  std::uint64_t end = 0;
};

/// Describes a cached variable, so that another process can create a copy.
struct CachedVariableSpec {
  std::string name;
  Shape shape;
  io::ElementType type = io::ElementType::f32;
  std::uint32_t array = 0;  ///< array of the shards; 0: the values, i > 0: slot i - 1
  std::vector<CachedShard> shards = {};

  void write_to(ArchiveWriter& archive) const;
  [[nodiscard]] static CachedVariableSpec read_from(ArchiveReader& archive);
};

}  // namespace dist::server

namespace dist::server::detail {

/// The beginning of every request except the greeting.
struct RequestHeader {
  std::uint64_t store = 0;    ///< incarnation of the server
  std::uint64_t client = 0;   ///< random number of the sender
  std::uint64_t ordinal = 0;  ///< of the client's changes, from 1; 0: changes nothing
};

/// The beginning of a push to one shard, followed by the update, the indices of the rows and the values.
struct PushHead {
  ShardId shard = 0;
  PushEncoding form = PushEncoding::dense;
  std::uint64_t rows = 0;   ///< 0 for dense and uniform pushes
  std::uint64_t bytes = 0;  ///< of the values
  PushOptions options;
};

/// The beginning of a pull from one shard, followed by the indices of the rows.
struct PullHead {
  ShardId shard = 0;
  io::ElementType type = io::ElementType::f32;
  bool all = true;
  std::uint64_t rows = 0;  ///< 0 for all
  PullOptions options;
};

/// The beginning of a reply to a pull, for each shard.
struct PulledShardHeader {
  std::uint64_t version = 0;  ///< of the shard when it was copied
  std::uint64_t bytes = 0;    ///< of its elements; 0 if the client has the version
};

enum class InitialValue : std::uint8_t { value, elements, function };

/// The beginning of a request to create a shard, followed by its initial values: one element, all elements, or the
/// number of a function and its functor.
struct CreateHead {
  ShardSpec spec;
  io::ElementType type = io::ElementType::f32;
  InitialValue initial = InitialValue::value;
  std::uint64_t bytes = 0;  ///< of the values
};

/// Bytes, with borrowed memory in between.
class Message {
 public:
  [[nodiscard]] ArchiveWriter& archive() { return archive_; }
  void lend(rpc::Chunk piece);
  /// Valid until the message is moved or changed.
  [[nodiscard]] rpc::ChunkList pieces() const;

 private:
  struct Borrowed {
    std::size_t at = 0;  ///< position in the archive
    rpc::Chunk piece;
  };

  ArchiveWriter archive_;
  dist::detail::ShortList<Borrowed, 2> lent_;
};

/// Writes the number of parts, and the parts. Borrows rows, and values that are not copies.
void encode(std::span<const PushPart> parts, Message& message);
void encode(std::span<const PullPart> parts, Message& message);

/// The parts of a received push. The bytes of the message must stay valid.
class DecodedPushes {
 public:
  /// Reads the rest of a request. Throws ArchiveError.
  explicit DecodedPushes(ArchiveReader& request);

  [[nodiscard]] std::span<const PushPart> parts() const noexcept { return parts_; }

 private:
  struct PartMemory {
    std::unique_ptr<ElementUpdateBase> update;
    std::vector<std::int64_t> rows;
    rpc::ChunkList values;
  };
  std::vector<PartMemory> memory_;  ///< data of the parts
  std::vector<PushPart> parts_;
};
/// The parts of a received pull, without destinations.
class DecodedPulls {
 public:
  explicit DecodedPulls(ArchiveReader& request);

  [[nodiscard]] std::span<const PullPart> parts() const noexcept { return parts_; }

 private:
  std::vector<std::vector<std::int64_t>> rows_;  ///< of each part
  std::vector<PullPart> parts_;
};

[[nodiscard]] StoreError malformed(const ArchiveError& error);
/// Throws ArchiveError if the number is not a type.
void require_known(io::ElementType type);

/// Receives the reply to a pull: stores its head, and writes the elements to their destinations.
class PullReply final : public rpc::ReplySink {
 public:
  /// The parts must outlive the reply.
  explicit PullReply(std::span<const PullPart> parts);
  void take(rpc::Chunk bytes) noexcept override;

  /// The bytes before the elements, or the server's error.
  [[nodiscard]] rpc::Chunk head() const noexcept { return head_; }
  /// Returns the versions from the head of a complete reply, after the beginning of all replies. Throws StoreError if
  /// elements did not fit their destination, and ArchiveError if the reply is for another request.
  [[nodiscard]] std::vector<std::uint64_t> versions(ArchiveReader& head) const;

 private:
  void find_rooms();

  const std::span<const PullPart> parts_;
  const std::size_t head_size_;
  std::vector<std::byte> head_;
  std::vector<std::span<std::byte>> rooms_;  ///< remaining destinations, in order
  std::size_t at_ = 0;
  std::uint64_t surplus_ = 0;  ///< bytes after the elements
  std::exception_ptr failure_;
};

}  // namespace dist::server::detail

#ifndef DIST_COMPILED
#include <dist/server/wire.ipp>
#endif
