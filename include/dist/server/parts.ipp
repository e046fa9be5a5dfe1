#pragma once

#include <sched.h>

#include <string_view>

#include <dist/core/algorithms.hpp>
#include <dist/core/aligned_buffer.hpp>
#include <dist/core/error.hpp>
#include <dist/core/text.hpp>
#include <dist/device/wait.hpp>
#include <dist/server/parts.hpp>
#include <dist/server/shard.hpp>

namespace dist::server::detail {

/// The buffer size for unaligned elements.
inline constexpr std::size_t bytes_of_block = 4096;

DIST_INLINE void for_each_block(BytesList pieces, std::size_t element_size,
                                dist::detail::FunctionRef<void(std::size_t, const std::byte*, std::size_t)> use) {
  alignas(cache_line) std::byte copy[bytes_of_block];
  std::size_t held = 0;  // bytes in the copy
  std::size_t first = 0;
  const auto use_copy = [&] {
    const std::size_t whole = held / element_size;
    if (whole > 0) use(first, copy, whole);
    first += whole;
    held = 0;
  };
  for (Bytes piece : pieces) {
    while (!piece.empty()) {
      const std::size_t cut = held % element_size;  // bytes of an element that continues in this piece
      const bool aligned = reinterpret_cast<std::uintptr_t>(piece.data()) % element_size == 0;
      if (cut == 0 && aligned && piece.size() >= element_size) {
        use_copy();
        const std::size_t whole = piece.size() / element_size;
        use(first, piece.data(), whole);
        first += whole;
        piece = piece.subspan(whole * element_size);
      } else {
        const std::size_t taken = std::min(piece.size(), (cut == 0 ? sizeof copy - held : element_size - cut));
        std::memcpy(copy + held, piece.data(), taken);
        held += taken;
        piece = piece.subspan(taken);
        if (held == sizeof copy) use_copy();
      }
    }
  }
  use_copy();
}

inline void copy_pieces(BytesList pieces, std::span<std::byte> to) {
  for_each_block(pieces, 1, [&](std::size_t first, const std::byte* bytes, std::size_t count) {
    std::memcpy(to.data() + first, bytes, count);
  });
}

/// Returns the positions in `rows`, sorted stably by row. Empty if all rows differ.
[[nodiscard]] inline std::vector<std::size_t> order_of_duplicates(std::span<const std::int64_t> rows) {
  std::vector<std::size_t> order(rows.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return rows[a] < rows[b]; });
  const auto again = [&](std::size_t a, std::size_t b) { return rows[a] == rows[b]; };
  if (std::adjacent_find(order.begin(), order.end(), again) == order.end()) order.clear();
  return order;
}

}  // namespace dist::server::detail

namespace dist::server {

DIST_INLINE void ElementUpdateBase::apply(const ShardMemory& shard, BytesList values) const {
  std::vector<std::byte> all;
  const std::size_t size = io::bytes_of(type());
  if (needs_all() && values.size() != 1) {
    all.resize(shard.elements * size);
    detail::copy_pieces(values, all);
  }
  const Bytes one{all};
  detail::for_each_block(
      all.empty() ? values : BytesList{&one, 1}, size,
      [&](std::size_t first, const std::byte* block, std::size_t count) { update(shard, first, block, count); });
}

DIST_INLINE void ElementUpdateBase::apply_uniform(const ShardMemory& shard, BytesList value) const {
  alignas(cache_line) std::byte block[detail::bytes_of_block];
  const std::size_t size = io::bytes_of(type());
  const std::span<std::byte> given = std::span{block}.first(size);
  detail::copy_pieces(value, given);
  detail::fill_elements(std::span{block}.subspan(size), given);
  const std::size_t most = sizeof block / size;
  for (std::size_t first = 0; first < shard.elements; first += most)
    update(shard, first, block, std::min(most, shard.elements - first));
}

DIST_INLINE void ElementUpdateBase::apply_rows(const ShardMemory& shard, std::span<const std::int64_t> rows,
                                               BytesList values, DuplicateRows repeats) const {
  const std::size_t width = shard.row_size;
  const std::size_t size = io::bytes_of(type());
  SumRows* const sum = repeats == DuplicateRows::summed ? sum_rows() : nullptr;
  const std::vector<std::size_t> order =
      sum == nullptr ? std::vector<std::size_t>{} : detail::order_of_duplicates(rows);
  if (order.empty())
    return detail::for_each_block(values, size, [&](std::size_t first, const std::byte* block, std::size_t count) {
      for (std::size_t taken = 0; count > 0; first += taken, block += taken * size, count -= taken) {
        const std::size_t column = first % width;
        taken = std::min(width - column, count);
        update(shard, static_cast<std::size_t>(rows[first / width]) * width + column, block, taken);
      }
    });
  std::vector<std::byte> given(rows.size() * width * size);
  detail::copy_pieces(values, given);
  std::vector<std::byte> summed(width * size);
  for (std::size_t begin = 0, end = 0; begin < order.size(); begin = end) {
    const std::int64_t row = rows[order[begin]];
    while (end < order.size() && rows[order[end]] == row) ++end;
    sum(given.data(), std::span{order}.subspan(begin, end - begin), width, summed.data());
    update(shard, static_cast<std::size_t>(row) * width, summed.data(), width);
  }
}

}  // namespace dist::server

namespace dist::server::detail {

DIST_INLINE void fill_elements(std::span<std::byte> elements, Bytes element) {
  for (std::size_t filled = 0; filled < elements.size();) {  // the filled part doubles
    const Bytes from = filled == 0 ? element : Bytes{elements.first(std::min(filled, elements.size() - filled))};
    std::memcpy(elements.data() + filled, from.data(), from.size());
    filled += from.size();
  }
}
DIST_INLINE void require_values(const Shard& shard, Bytes bytes) {
  if (shard.type() == io::ElementType::boolean &&
      std::any_of(bytes.begin(), bytes.end(), [](std::byte byte) { return byte > std::byte{1}; }))
    throw StoreError(Problem::wrong_value, concat(to_string(shard.spec()), " holds bools"),
                     "a given value is neither 0 nor 1", "Give bools");
}
DIST_INLINE void require_whole_rows(ShardId shard, std::size_t rows, std::size_t values) {
  if (rows == 0 ? values != 0 : values % rows != 0)
    throw ShapeMismatch(concat("Rows for shard ", shard, " do not fit together"),
                        concat(rows, " indices and ", values, " values"), "Give one row of values for each index");
}
DIST_INLINE void require_version_of_bound(ShardId shard, const PushOptions& options) {
  if (options.version == unknown_version && options.max_staleness != any_staleness)
    throw InvalidArgument(concat("A push to shard ", shard, " cannot have a staleness bound"),
                          "the version that its values come from is unknown",
                          "Give the version that was pulled, or no bound");
}
DIST_INLINE void require_room(const PullPart& part, std::uint64_t bytes) {
  if (bytes != part.to.size())
    throw StoreError(Problem::wrong_size, concat("A pull of shard ", part.shard, " does not fit its memory"),
                     concat("its elements are ", bytes, " bytes, the memory has ", part.to.size()),
                     "Give memory of the size of the shard");
}

inline void require_type(const Shard& shard, io::ElementType given) {
  if (shard.type() != given)
    throw StoreError(
        Problem::wrong_type, concat(to_string(shard.spec()), " has elements of another type"),
        concat("they are ", io::to_string(shard.type()), ", the given elements are ", io::to_string(given)),
        "Use the variable's element type");
}
inline void require_rows(const Shard& shard, std::span<const std::int64_t> rows) {
  for (const std::int64_t row : rows)
    if (row < 0 || static_cast<std::uint64_t>(row) >= shard.spec().rows)
      throw StoreError(Problem::wrong_row, concat(to_string(shard.spec()), " has no row ", row),
                       concat("it has ", shard.spec().rows), "Give indices from 0 to the number of rows - 1");
}
/// `what` names the source of the version in the message, as in "A push".
inline void require_version(const Shard& shard, std::uint64_t version, std::string_view what) {
  if (version != unknown_version && version > shard.version())
    throw StoreError(Problem::malformed, concat(what, " names a version that does not exist"),
                     concat("number ", version, " of ", to_string(shard.spec()), ", which is at ", shard.version()),
                     "Give the version that a pull or a push of this shard returned");
}

inline void check(const PushPart& part, const Shard& shard) {
  const bool dense = part.form == PushEncoding::dense;
  const bool uniform = part.form == PushEncoding::uniform;
  require_type(shard, part.update->type());
  if (!dense && part.update->needs_all())
    throw StoreError(Problem::wrong_size,
                     concat(to_string(shard.spec()), " has an update that computes norms over all elements"),
                     uniform ? "one value for all elements was given" : "values of some rows were given",
                     "Give one value for each element");
  const std::uint64_t unit = dense ? shard.bytes() : uniform ? io::bytes_of(shard.type()) : shard.row_bytes();
  const std::uint64_t units = dense || uniform ? 1 : part.rows.size();
  const std::uint64_t bytes = part.values.size();
  if (unit == 0 ? bytes != 0 : bytes % unit != 0 || bytes / unit != units)
    throw StoreError(Problem::wrong_size, concat(to_string(shard.spec()), " does not fit the values of a push"),
                     concat("it takes ", units, " times ", unit, " bytes, and ", bytes, " were given"),
                     "Give one value for each element, one for all, or one row for each index");
  require_rows(shard, part.rows);
  if (part.options.first_slot + part.update->slots() > shard.slots())
    throw StoreError(Problem::wrong_slot, concat(to_string(shard.spec()), " lacks slots for an update"),
                     concat("it has ", shard.slots(), ", and the update uses ", part.update->slots(), " from number ",
                            part.options.first_slot, " on"),
                     "Create the optimizer's slots before it is applied");
  require_version(shard, part.options.version, "A push");
  part.values.use([&](BytesList values) {
    for (const Bytes piece : values) require_values(shard, piece);
    part.update->check(values);
  });
}
[[nodiscard]] inline Pushed apply(const PushPart& part, Shard& shard) {
  Shard::Locked locked = shard.lock();
  const bool known = part.options.version != unknown_version;
  const std::uint64_t behind = known ? locked.version() - part.options.version : 0;
  if (behind > part.options.max_staleness) {
    locked.count_refusal();
    return {locked.version(), behind, false};
  }
  const ShardMemory memory = locked.memory(part.options.first_slot, part.update->slots());
  locked.change([&] {
    part.values.use([&](BytesList values) {
      if (part.form == PushEncoding::dense)
        part.update->apply(memory, values);
      else if (part.form == PushEncoding::uniform)
        part.update->apply_uniform(memory, values);
      else
        part.update->apply_rows(
            memory, part.rows, values,
            part.form == PushEncoding::rows_summed ? DuplicateRows::summed : DuplicateRows::in_order);
    });
    locked.count_push(behind, known);
  });
  return {locked.version(), behind};
}
DIST_INLINE Pushed apply(const PushPart& part, ShardTable& shards) {
  const std::shared_ptr<Shard> shard = shards.require(part.shard);
  check(part, *shard);
  return apply(part, *shard);
}
DIST_INLINE std::vector<Pushed> apply(std::span<const PushPart> parts, ShardTable& shards) {
  std::vector<std::shared_ptr<Shard>> found;
  found.reserve(parts.size());
  for (const PushPart& part : parts) check(part, *found.emplace_back(shards.require(part.shard)));
  std::vector<Pushed> pushed;
  pushed.reserve(parts.size());
  for (std::size_t i = 0; i < parts.size(); ++i) pushed.push_back(apply(parts[i], *found[i]));
  return pushed;
}

DIST_INLINE FoundPull find(const PullPart& part, ShardTable& shards) {
  FoundPull found{shards.require(part.shard)};
  const Shard& shard = *found.shard;
  require_type(shard, part.type);
  require_rows(shard, part.rows);
  if (part.options.array > shard.slots())
    throw StoreError(Problem::wrong_slot, concat(to_string(shard.spec()), " has no slot ", part.options.array - 1),
                     concat("it has ", shard.slots()), "Create the optimizer's slots before they are read");
  require_version(shard, part.options.known, "A pull");
  found.is_known = part.options.known == shard.version();
  if (!found.is_known) found.bytes = part.all ? shard.bytes() : part.rows.size() * shard.row_bytes();
  return found;
}
inline void copy_elements(const PullPart& part, const Shard& shard, Bytes from, std::byte* to) {
  if (part.all) {
    if (!from.empty()) std::memcpy(to, from.data(), from.size());
  } else {
    const std::size_t width = shard.row_bytes();
    for (std::size_t i = 0; i < part.rows.size() && width > 0; ++i)
      std::memcpy(to + i * width, from.data() + static_cast<std::size_t>(part.rows[i]) * width, width);
  }
}
DIST_INLINE std::uint64_t copy(const PullPart& part, const FoundPull& found, std::byte* to) {
  if (found.is_known) return part.options.known;
  const Shard::Locked locked = found.shard->lock();
  copy_elements(part, *found.shard, locked.array(part.options.array), to);
  return locked.version();
}
DIST_INLINE std::optional<std::uint64_t> copy_without_lock(const PullPart& part, const FoundPull& found,
                                                           std::byte* to) {
  if (found.is_known) return part.options.known;
  constexpr std::int64_t longest = 20'000'000;
  const std::int64_t begin = dist::detail::monotonic_nanoseconds();
  do {
    const std::optional<std::uint64_t> version =
        found.shard->read(part.options.array, [&](Bytes from) { copy_elements(part, *found.shard, from, to); });
    if (version) return version;
    sched_yield();
  } while (dist::detail::monotonic_nanoseconds() - begin < longest);
  return std::nullopt;
}

}  // namespace dist::server::detail
