/// What is pushed to a shard of a parameter server and pulled from it, and how that is done, by the store or by a client that
/// reaches the store's memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <dist/core/config.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/io/element_type.hpp>
#include <dist/server/error.hpp>
#include <dist/server/shard_memory.hpp>
#include <dist/server/shard_spec.hpp>

namespace dist {

class ArchiveWriter;

}  // namespace dist

namespace dist::server {

class Shard;
class ShardTable;

/// The version of a shard from which a gradient was computed, or that somebody has, where nobody knows.
inline constexpr std::uint64_t unknown_version = ~std::uint64_t{0};

/// A push is applied however stale it is.
inline constexpr std::uint64_t any_staleness = ~std::uint64_t{0};

/// What is said about a pull besides where its values go.
struct PullOptions {
  std::uint64_t known =
      unknown_version;      ///< of the shard, whose values are there already: they come if it has changed since
  std::uint32_t array = 0;  ///< 0 are the weights, then come the slots
};

/// What is said about a push besides its values.
///
/// The staleness of a push is how many pushes the shard has taken since `version`. One of more than `max_staleness` is refused:
/// the shard stays as it is, and `Pushed::applied` tells who pushes, who pulls again then (ServerVariable::refresh), computes
/// from what has come, and pushes that. Each shard decides for itself, so of a gradient for several shards some may take their
/// part while others refuse it. The bound holds exactly: it is compared under the lock under which the push is applied.
struct PushOptions {
  std::uint64_t version = unknown_version;      ///< of the shard when what the values come from was pulled
  std::uint32_t first_slot = 0;                 ///< of those that the update uses
  std::uint64_t max_staleness = any_staleness;  ///< 0: nobody else may have pushed since
};

/// What a push of one shard comes to.
struct Pushed {
  std::uint64_t version = 0;    ///< of the shard after it
  std::uint64_t staleness = 0;  ///< pushes of others in between, if the push has said from which version it comes
  bool applied = true;          ///< false where it was more stale than it may be
  friend bool operator==(const Pushed&, const Pushed&) = default;
};

/// What becomes of several rows of values for the same row of a shard.
enum class DuplicateRows : std::uint8_t {
  in_order,  ///< each is applied after the one before, as scatter operations do (spec G26)
  summed,    ///< their sum in this order is applied once, as optimizers do (spec H10, P14)
};

/// Bytes in one piece of memory, and in several.
using Bytes = std::span<const std::byte>;
using BytesList = std::span<const Bytes>;

/// An update of elements that are all of one type, whatever that is.
class ElementUpdateBase {
 public:
  ElementUpdateBase() = default;
  ElementUpdateBase(const ElementUpdateBase&) = delete;
  ElementUpdateBase& operator=(const ElementUpdateBase&) = delete;
  virtual ~ElementUpdateBase() = default;

  [[nodiscard]] virtual io::ElementType type() const noexcept = 0;
  [[nodiscard]] virtual std::size_t slots() const noexcept = 0;
  /// Whether it looks at all elements before it updates one, and so takes values for all.
  [[nodiscard]] virtual bool needs_all() const noexcept = 0;
  /// Throws StoreError for values that it cannot take.
  virtual void check(BytesList values) const = 0;
  /// Updates all elements, each with one of the values.
  virtual void apply(const ShardMemory& shard, BytesList values) const = 0;
  /// Updates all elements, each with the one value that there is.
  virtual void apply_uniform(const ShardMemory& shard, BytesList value) const = 0;
  /// Updates rows with those of the values. There are such rows.
  virtual void apply_rows(const ShardMemory& shard, std::span<const std::int64_t> rows, BytesList values,
                          DuplicateRows repeats) const = 0;
  /// Writes what another process needs to make it (detail::get_update).
  virtual void write(ArchiveWriter& archive) const = 0;
};

namespace detail {

/// One value for each element, one for all of them, or a row of values for each index.
enum class PushEncoding : std::uint8_t { dense, uniform, rows_in_order, rows_summed };

/// Values, in memory of others or as the copy of one.
class ValueBytes {
 public:
  ValueBytes() = default;
  explicit ValueBytes(Bytes one) noexcept : one_(one) {}
  explicit ValueBytes(BytesList several) noexcept : several_(several) {}
  /// The copy of a value, which has at most 8 bytes.
  [[nodiscard]] static ValueBytes copy_of(Bytes value) noexcept {
    ValueBytes copy;
    std::memcpy(copy.copied_.data(), value.data(), value.size());
    copy.copied_bytes_ = value.size();
    return copy;
  }

  [[nodiscard]] std::uint64_t size() const noexcept {
    std::uint64_t all = one_.size() + copied_bytes_;
    for (const Bytes piece : several_) all += piece.size();
    return all;
  }
  [[nodiscard]] bool is_copy() const noexcept { return copied_bytes_ != 0; }
  /// Returns `use(pieces)`.
  template <class Use>
  decltype(auto) use(Use&& use) const {
    const Bytes one = is_copy() ? Bytes{copied_}.first(copied_bytes_) : one_;
    return std::forward<Use>(use)(several_.empty() ? BytesList{&one, 1} : several_);
  }

 private:
  Bytes one_;
  BytesList several_;
  std::array<std::byte, 8> copied_{};
  std::size_t copied_bytes_ = 0;
};

/// What is pushed to a shard. The update, rows and values are borrowed.
struct PushPart {
  ShardId shard = 0;
  PushEncoding form = PushEncoding::dense;
  PushOptions options = {};
  const ElementUpdateBase* update = nullptr;
  std::span<const std::int64_t> rows = {};
  ValueBytes values = {};
};
/// What is pulled from a shard, and where it goes. The rows are borrowed.
struct PullPart {
  ShardId shard = 0;
  io::ElementType type = io::ElementType::f32;
  PullOptions options = {};
  bool all = true;  ///< elements, and not those of some rows
  std::span<const std::int64_t> rows = {};
  std::span<std::byte> to = {};
};

/// Throws StoreError for bytes that are no values of the shard's type: a bool is 0 or 1.
void require_values(const Shard& shard, Bytes bytes);
/// Refuses, by the shard's number, rows of values that are not as many as the indices.
void require_whole_rows(ShardId shard, std::size_t rows, std::size_t values);

/// Applies the parts of a push, and says what became of each. If one of them cannot be applied, throws StoreError before
/// anything is changed.
[[nodiscard]] std::vector<Pushed> apply(std::span<const PushPart> parts, ShardTable& shards);
[[nodiscard]] Pushed apply(const PushPart& part, ShardTable& shards);

/// A part of a pull whose shard was found.
struct FoundPull {
  std::shared_ptr<Shard> shard;
  bool is_known = false;  ///< the caller has the shard's elements already
  std::size_t bytes = 0;  ///< to copy
};
/// Throws StoreError for a part that cannot be pulled.
[[nodiscard]] FoundPull find(const PullPart& part, ShardTable& shards);
/// Throws StoreError unless the part has room for so many bytes.
void require_room(const PullPart& part, std::uint64_t bytes);
/// Copies the bytes to `to`, and returns the version of the shard.
[[nodiscard]] std::uint64_t copy(const PullPart& part, const FoundPull& found, std::byte* to);
/// The same without the shard's lock. Returns nothing if the shard has changed during each attempt for 20 milliseconds.
[[nodiscard]] std::optional<std::uint64_t> copy_without_lock(const PullPart& part, const FoundPull& found,
                                                             std::byte* to);

}  // namespace detail

}  // namespace dist::server

#ifndef DIST_COMPILED
#include <dist/server/parts.ipp>
#endif
