#pragma once

#include <sched.h>

#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>

#include <dist/core/algorithms.hpp>
#include <dist/core/text.hpp>
#include <dist/device/wait.hpp>
#include <dist/server/shard_parts.hpp>

namespace dist::server::detail {

DIST_INLINE StoreError malformed(const ArchiveError& error) {
  return {Problem::malformed, "A server does not understand a request", error.what(),
          "Start all tasks of the job from one build"};
}
DIST_INLINE void require_known(io::ElementType type) {
  if (type > io::ElementType::f64)
    throw ArchiveError("A request names no type of elements", text("number ", static_cast<unsigned>(type)),
                       "Start all processes of the job from one build of the program");
}
DIST_INLINE void require_values(const Shard& shard, rpc::Piece bytes) {
  if (shard.type() == io::ElementType::boolean &&
      std::any_of(bytes.begin(), bytes.end(), [](std::byte byte) { return byte > std::byte{1}; }))
    throw StoreError(Problem::wrong_value, text(to_string(shard.spec()), " holds bools"),
                     "a value given is neither 0 nor 1", "Give bools");
}

inline void require_type(const Shard& shard, io::ElementType given) {
  if (shard.type() != given)
    throw StoreError(Problem::wrong_type, text(to_string(shard.spec()), " has elements of another type"),
                     text("they are ", io::to_string(shard.type()), ", those given are ", io::to_string(given)),
                     "Use the variable's element type");
}

inline void require_rows(const Shard& shard, std::span<const std::int64_t> rows) {
  for (const std::int64_t row : rows)
    if (row < 0 || static_cast<std::uint64_t>(row) >= shard.spec().rows)
      throw StoreError(Problem::wrong_row, text(to_string(shard.spec()), " has no row ", row),
                       text("it has ", shard.spec().rows), "Give indices from 0 to the number of rows - 1");
}
/// `what` names a version of the shard, as in "A push comes from".
inline void require_version(const Shard& shard, std::uint64_t version, std::string_view what) {
  if (version != unknown_version && version > shard.version())
    throw ArchiveError(text(what, " a version that there was not"),
                       text("number ", version, " of ", to_string(shard.spec()), ", which is at ", shard.version()),
                       "Give the version that a pull or a push of this shard returned");
}
[[nodiscard]] inline std::vector<std::int64_t> indices(ArchiveReader& request, std::uint64_t rows) {
  if (rows > request.left() / sizeof(std::int64_t))
    dist::detail::refuse_long_list("A request", "indices", rows, request.left());
  std::vector<std::int64_t> all(static_cast<std::size_t>(rows));
  request.get_bytes(std::as_writable_bytes(std::span{all}));
  return all;
}

DIST_INLINE std::vector<PushPart> get_push_parts(ArchiveReader& request, std::size_t count, ShardTable& shards) {
  std::vector<PushPart> parts(count);
  for (PushPart& part : parts) {
    part.head = request.get<PushHead>();
    part.update = get_update(request);
    part.rows = indices(request, part.head.rows);
    part.values = request.get_pieces(part.head.bytes);
    part.shard = shards.require(part.head.shard);
  }
  request.expect_end();
  return parts;
}
inline void check(const PushPart& part) {
  const Shard& shard = *part.shard;
  const bool dense = part.head.form == Form::dense;
  const bool uniform = part.head.form == Form::uniform;
  if (part.head.form > Form::rows_summed || ((dense || uniform) && !part.rows.empty()))
    throw ArchiveError("A push is in no known form", text("number ", static_cast<unsigned>(part.head.form)),
                       "Start all processes of the job from one build of the program");
  require_type(shard, part.update->type());
  if (!dense && part.update->needs_all())
    throw StoreError(Problem::wrong_size, text(to_string(shard.spec()), " is updated by norms of all that is pushed"),
                     uniform ? "one value for all elements was given" : "values of some rows were given",
                     "Give one value for each element");
  const std::uint64_t unit = dense ? shard.bytes() : uniform ? io::bytes_of(shard.type()) : shard.row_bytes();
  const std::uint64_t units = dense || uniform ? 1 : part.rows.size();
  if (unit == 0 ? part.head.bytes != 0 : part.head.bytes % unit != 0 || part.head.bytes / unit != units)
    throw StoreError(Problem::wrong_size, text(to_string(shard.spec()), " does not fit the values of a push"),
                     text("it takes ", units, " times ", unit, " bytes, and ", part.head.bytes, " were given"),
                     "Give one value for each element, one for all, or one row for each index");
  require_rows(shard, part.rows);
  if (part.head.options.first_slot + part.update->slots() > shard.slots())
    throw StoreError(Problem::wrong_slot, text(to_string(shard.spec()), " lacks slots for an update"),
                     text("it has ", shard.slots(), ", and the update uses ", part.update->slots(), " from number ",
                          part.head.options.first_slot, " on"),
                     "Create the optimizer's slots before it is applied");
  require_version(shard, part.head.options.version, "A push comes from");
  for (const rpc::Piece piece : part.values) require_values(shard, piece);
  part.update->check(part.values);
}
[[nodiscard]] inline Pushed apply(const PushPart& part) {
  Shard::Locked locked = part.shard->lock();
  const PushOptions& options = part.head.options;
  const bool known = options.version != unknown_version;
  const std::uint64_t behind = known ? locked.version() - options.version : 0;
  if (behind > options.max_staleness) {
    locked.count_refusal();
    return {locked.version(), behind, false};
  }
  const ShardMemory memory = locked.memory(options.first_slot, part.update->slots());
  locked.change([&] {
    if (part.head.form == Form::dense)
      part.update->apply(memory, part.values);
    else if (part.head.form == Form::uniform)
      part.update->apply_uniform(memory, part.values);
    else
      part.update->apply_rows(memory, part.rows, part.values,
                              part.head.form == Form::rows_summed ? Repeats::summed : Repeats::in_order);
    locked.count_push(behind, known);
  });
  return {locked.version(), behind};
}
DIST_INLINE std::vector<Pushed> apply_all(const std::vector<PushPart>& parts) {
  for (const PushPart& part : parts) check(part);
  std::vector<Pushed> pushed;
  pushed.reserve(parts.size());
  for (const PushPart& part : parts) pushed.push_back(apply(part));
  return pushed;
}

DIST_INLINE std::vector<PullPart> get_pull_parts(ArchiveReader& request, std::size_t count, ShardTable& shards) {
  std::vector<PullPart> parts(count);
  for (PullPart& part : parts) {
    part.head = request.get<PullHead>();
    require_known(part.head.type);
    part.rows = indices(request, part.head.rows);
    part.shard = shards.require(part.head.shard);
    const Shard& shard = *part.shard;
    require_type(shard, part.head.type);
    require_rows(shard, part.rows);
    const PullOptions& options = part.head.options;
    if (options.array > shard.slots())
      throw StoreError(Problem::wrong_slot, text(to_string(shard.spec()), " has no slot ", options.array - 1),
                       text("it has ", shard.slots()), "Create the optimizer's slots before they are read");
    require_version(shard, options.known, "A pull knows");
    part.is_known = options.known == shard.version();
    if (!part.is_known) part.bytes = part.head.all ? shard.bytes() : part.rows.size() * shard.row_bytes();
  }
  request.expect_end();
  return parts;
}
inline void copy_elements(const PullPart& part, std::span<const std::byte> from, std::byte* to) {
  if (part.head.all) {
    if (!from.empty()) std::memcpy(to, from.data(), from.size());
  } else {
    const std::size_t width = part.shard->row_bytes();
    for (std::size_t i = 0; i < part.rows.size() && width > 0; ++i)
      std::memcpy(to + i * width, from.data() + static_cast<std::size_t>(part.rows[i]) * width, width);
  }
}
DIST_INLINE std::uint64_t copy(const PullPart& part, std::byte* to) {
  if (part.is_known) return part.head.options.known;
  const Shard::Locked locked = part.shard->lock();
  copy_elements(part, locked.array(part.head.options.array), to);
  return locked.version();
}
DIST_INLINE std::optional<std::uint64_t> copy_without_lock(const PullPart& part, std::byte* to) {
  if (part.is_known) return part.head.options.known;
  constexpr std::int64_t longest = 20'000'000;
  const std::int64_t begin = dist::detail::monotonic_nanoseconds();
  do {
    const std::optional<std::uint64_t> version = part.shard->read(
        part.head.options.array, [&](std::span<const std::byte> from) { copy_elements(part, from, to); });
    if (version) return version;
    sched_yield();
  } while (dist::detail::monotonic_nanoseconds() - begin < longest);
  return std::nullopt;
}

}  // namespace dist::server::detail
