/// The parts of pushes and pulls, and their execution in the store or in mapped memory.
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
#include <dist/core/functions.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/io/element_type.hpp>
#include <dist/server/error.hpp>
#include <dist/server/shard_spec.hpp>

namespace dist {

class ArchiveWriter;

}  // namespace dist

namespace dist::server {

class Shard;
class ShardTable;

/// The version if it is unknown.
inline constexpr std::uint64_t unknown_version = ~std::uint64_t{0};

/// No limit on the staleness of a push.
inline constexpr std::uint64_t any_staleness = ~std::uint64_t{0};

/// Options of a pull.
struct PullOptions {
  std::uint64_t known =
      unknown_version;      ///< version that the caller has; elements are sent only if the shard has changed since
  std::uint32_t array = 0;  ///< 0: the weights; i > 0: slot i - 1
};

/// Options of a push.
///
/// The staleness of a push is the number of pushes that the shard has applied since `version`. Above `max_staleness`,
/// the server rejects the push: the shard stays unchanged, and `Pushed::applied` is false. The caller then pulls again
/// (ServerVariable::refresh) and pushes a new gradient. Each shard decides independently, so a gradient for several
/// shards may be applied in part. The limit is exact: it is checked under the lock of the update.
struct PushOptions {
  std::uint64_t version = unknown_version;      ///< the pulled version from which the values were computed
  std::uint32_t first_slot = 0;                 ///< first slot that the update uses
  std::uint64_t max_staleness = any_staleness;  ///< 0: no other push in between
};

/// The result of a push to one shard.
struct Pushed {
  std::uint64_t version = 0;    ///< of the shard after the push
  std::uint64_t staleness = 0;  ///< number of pushes in between, if the push has a version
  bool applied = true;          ///< false if the push was too stale
  friend bool operator==(const Pushed&, const Pushed&) = default;
};

/// Treatment of several rows of values with the same row index.
enum class DuplicateRows : std::uint8_t {
  in_order,  ///< applied one after another, like scatter operations (spec G26)
  summed,    ///< summed in this order and applied once, like optimizers (spec H10, P14)
};

/// Contiguous bytes, and a list of pieces.
using Bytes = std::span<const std::byte>;
using BytesList = std::span<const Bytes>;

/// See detail::sum_rows.
using SumRows = void(const std::byte* values, std::span<const std::size_t> rows, std::size_t width, std::byte* result);

/// An update of elements of any type.
class ElementUpdateBase {
 public:
  ElementUpdateBase() = default;
  ElementUpdateBase(const ElementUpdateBase&) = delete;
  ElementUpdateBase& operator=(const ElementUpdateBase&) = delete;
  virtual ~ElementUpdateBase() = default;

  [[nodiscard]] virtual io::ElementType type() const noexcept = 0;
  [[nodiscard]] virtual std::size_t slots() const noexcept = 0;
  /// True if the update reads all elements before it changes any, and so needs values for all.
  [[nodiscard]] virtual bool needs_all() const noexcept = 0;
  /// Throws StoreError if the update cannot use the values.
  virtual void check(BytesList values) const = 0;
  /// Writes the update for another process (see detail::get_update).
  virtual void write(ArchiveWriter& archive) const = 0;

  /// Updates all elements, with one value each.
  void apply(const ShardMemory& shard, BytesList values) const;
  /// Updates all elements with the same value.
  void apply_uniform(const ShardMemory& shard, BytesList value) const;
  /// Updates existing rows, with one row of values each.
  void apply_rows(const ShardMemory& shard, std::span<const std::int64_t> rows, BytesList values,
                  DuplicateRows repeats) const;

 private:
  /// Updates `count` elements from `first` on, with one aligned value each. If `needs_all()`, one call gets all
  /// elements.
  virtual void update(const ShardMemory& shard, std::size_t first, const std::byte* values,
                      std::size_t count) const = 0;
  /// Null if elements cannot be added: the last of several rows with the same index wins.
  [[nodiscard]] virtual SumRows* sum_rows() const noexcept = 0;
};

namespace detail {

/// Calls `use(first, elements, count)` for all elements of the pieces, block by block. Copies only unaligned elements,
/// to a buffer of one block.
void for_each_block(BytesList pieces, std::size_t element_size,
                    dist::detail::FunctionRef<void(std::size_t, const std::byte*, std::size_t)> use);

/// One value for each element, one value for all, or a row of values for each index.
enum class PushEncoding : std::uint8_t { dense, uniform, rows_in_order, rows_summed };

/// Values, borrowed or as a copy of one value.
class ValueBytes {
 public:
  ValueBytes() = default;
  explicit ValueBytes(Bytes one) noexcept : one_(one) {}
  explicit ValueBytes(BytesList several) noexcept : several_(several) {}
  /// Copies a value of at most 8 bytes.
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

/// The push to one shard. The update, rows and values are borrowed.
struct PushPart {
  ShardId shard = 0;
  PushEncoding form = PushEncoding::dense;
  PushOptions options = {};
  const ElementUpdateBase* update = nullptr;
  std::span<const std::int64_t> rows = {};
  ValueBytes values = {};
};
/// The pull of one shard, and its destination. The rows are borrowed.
struct PullPart {
  ShardId shard = 0;
  io::ElementType type = io::ElementType::f32;
  PullOptions options = {};
  bool all = true;  ///< true: all elements; false: the given rows
  std::span<const std::int64_t> rows = {};
  std::span<std::byte> to = {};
};

/// Copies one element to all elements.
void fill_elements(std::span<std::byte> elements, Bytes element);

/// Throws StoreError for bools other than 0 or 1.
void require_values(const Shard& shard, Bytes bytes);
/// Throws InvalidArgument if a push has a staleness limit, but no version.
void require_version_of_bound(ShardId shard, const PushOptions& options);
/// Throws ShapeMismatch unless `values` elements are whole rows. `shard` is named in the message.
void require_whole_rows(ShardId shard, std::size_t rows, std::size_t values);

/// Applies the parts of a push, and returns their results. Throws StoreError before any change if a part is invalid.
[[nodiscard]] std::vector<Pushed> apply(std::span<const PushPart> parts, ShardTable& shards);
[[nodiscard]] Pushed apply(const PushPart& part, ShardTable& shards);

/// A part of a pull with its shard.
struct FoundPull {
  std::shared_ptr<Shard> shard;
  bool is_known = false;  ///< the caller already has this version
  std::size_t bytes = 0;  ///< to copy
};
/// Throws StoreError if the part is invalid.
[[nodiscard]] FoundPull find(const PullPart& part, ShardTable& shards);
/// Throws StoreError if the destination does not have `bytes` bytes.
void require_room(const PullPart& part, std::uint64_t bytes);
/// Copies the elements to `to`, and returns the version of the shard.
[[nodiscard]] std::uint64_t copy(const PullPart& part, const FoundPull& found, std::byte* to);
/// Copies the elements to `to` without locking the shard, and returns its version. Returns nothing if the shard changes
/// during each attempt for 20 ms.
[[nodiscard]] std::optional<std::uint64_t> copy_without_lock(const PullPart& part, const FoundPull& found,
                                                             std::byte* to);

}  // namespace detail

}  // namespace dist::server

#ifndef DIST_COMPILED
#include <dist/server/parts.ipp>
#endif
