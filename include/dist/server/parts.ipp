#pragma once

#include <sched.h>

#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>

#include <dist/core/algorithms.hpp>
#include <dist/core/error.hpp>
#include <dist/core/text.hpp>
#include <dist/device/wait.hpp>
#include <dist/server/parts.hpp>
#include <dist/server/shard.hpp>
#include <dist/server/shard_table.hpp>

namespace dist::server::detail {

DIST_INLINE void require_values(const Shard& shard, Bytes bytes) {
  if (shard.type() == io::ElementType::boolean &&
      std::any_of(bytes.begin(), bytes.end(), [](std::byte byte) { return byte > std::byte{1}; }))
    throw StoreError(Problem::wrong_value, concat(to_string(shard.spec()), " holds bools"),
                     "a value given is neither 0 nor 1", "Give bools");
}
DIST_INLINE void require_whole_rows(ShardId shard, std::size_t rows, std::size_t values) {
  if (rows == 0 ? values != 0 : values % rows != 0)
    throw ShapeMismatch(concat("Rows for shard ", shard, " do not fit together"),
                        concat(rows, " indices and ", values, " values"), "Give one row of values for each index");
}
DIST_INLINE void require_room(const PullPart& part, std::uint64_t bytes) {
  if (bytes != part.to.size())
    throw StoreError(Problem::wrong_size, concat("A pull of shard ", part.shard, " has no room for its elements"),
                     concat("they are ", bytes, " bytes, there is room for ", part.to.size()),
                     "Give memory of the size of the shard");
}

inline void require_type(const Shard& shard, io::ElementType given) {
  if (shard.type() != given)
    throw StoreError(Problem::wrong_type, concat(to_string(shard.spec()), " has elements of another type"),
                     concat("they are ", io::to_string(shard.type()), ", those given are ", io::to_string(given)),
                     "Use the variable's element type");
}
inline void require_rows(const Shard& shard, std::span<const std::int64_t> rows) {
  for (const std::int64_t row : rows)
    if (row < 0 || static_cast<std::uint64_t>(row) >= shard.spec().rows)
      throw StoreError(Problem::wrong_row, concat(to_string(shard.spec()), " has no row ", row),
                       concat("it has ", shard.spec().rows), "Give indices from 0 to the number of rows - 1");
}
/// `what` names a version of the shard, as in "A push comes from".
inline void require_version(const Shard& shard, std::uint64_t version, std::string_view what) {
  if (version != unknown_version && version > shard.version())
    throw StoreError(Problem::malformed, concat(what, " a version that there was not"),
                     concat("number ", version, " of ", to_string(shard.spec()), ", which is at ", shard.version()),
                     "Give the version that a pull or a push of this shard returned");
}

inline void check(const PushPart& part, const Shard& shard) {
  const bool dense = part.form == PushEncoding::dense;
  const bool uniform = part.form == PushEncoding::uniform;
  require_type(shard, part.update->type());
  if (!dense && part.update->needs_all())
    throw StoreError(Problem::wrong_size, concat(to_string(shard.spec()), " is updated by norms of all that is pushed"),
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
  require_version(shard, part.options.version, "A push comes from");
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
  require_version(shard, part.options.known, "A pull knows");
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
