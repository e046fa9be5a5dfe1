#pragma once

#include <algorithm>
#include <concepts>
#include <cstring>
#include <limits>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <string_view>

#include <dist/io/element_type.hpp>
#include <dist/net/random_number.hpp>
#include <dist/server/binary.hpp>
#include <dist/server/callers.hpp>
#include <dist/server/registry.hpp>
#include <dist/server/requests.hpp>
#include <dist/server/shard.hpp>
#include <dist/server/shard_spec.hpp>
#include <dist/server/store.hpp>
#include <dist/server/update.hpp>

namespace dist::server {

/// The shards by their numbers, whose requests have come, and what requests ask of shards.
class Store::Shards {
 public:
  struct PushPart {
    std::shared_ptr<Shard> shard;
    detail::PushHead head;
    std::unique_ptr<AnyUpdate> update;
    std::vector<std::int64_t> rows;
    rpc::PieceList values;
  };
  struct PullPart {
    std::shared_ptr<Shard> shard;
    detail::PullHead head;
    std::vector<std::int64_t> rows;
    bool is_known = false;  ///< the caller has the elements of this version
    std::size_t bytes = 0;  ///< that are copied
  };
  [[nodiscard]] std::shared_ptr<Shard> find(ShardId id) const {
    const std::lock_guard lock{mutex_};
    const auto found = shards_.find(id);
    return found == shards_.end() ? nullptr : found->second;
  }
  [[nodiscard]] std::shared_ptr<Shard> require(ShardId id) const {
    std::shared_ptr<Shard> shard = find(id);
    if (!shard)
      throw StoreError(Problem::unknown_shard, text("This server has no shard ", id),
                       "none was created, or it was dropped",
                       "Create the variable before it is used, and use it no longer than it exists");
    return shard;
  }

  void add(const ShardSpec& spec, std::shared_ptr<Shard> shard) {
    const std::lock_guard lock{mutex_};
    if (!shards_.emplace(spec.id, std::move(shard)).second) refuse_second(spec);
  }
  void erase(const std::vector<ShardId>& ids) {
    const std::lock_guard lock{mutex_};
    for (const ShardId id : ids) shards_.erase(id);
  }
  /// In the order of their numbers.
  [[nodiscard]] std::vector<ShardInfo> list() const {
    std::vector<ShardInfo> all;
    const std::lock_guard lock{mutex_};
    for (const auto& [id, shard] : shards_)
      all.push_back({shard->spec(), shard->type(), shard->slots(), shard->version()});
    return all;
  }
  [[nodiscard]] Callers& callers() noexcept { return callers_; }

  /// The envelope of a request to the store of that number.
  [[nodiscard]] static detail::Envelope envelope_of(ArchiveReader& request, std::uint64_t store) {
    const auto envelope = request.get<detail::Envelope>();
    if (envelope.store != store)
      throw StoreError(Problem::lost_variables, "This server has lost its variables", "it was started again",
                       "Restore a checkpoint");
    return envelope;
  }
  /// How many parts follow, each of which has at least the bytes of a `Head`.
  template <class Head>
  [[nodiscard]] static std::size_t counted(ArchiveReader& request) {
    const auto count = request.get<std::uint32_t>();
    if (count > request.left() / dist::detail::least_bytes<Head>())
      dist::detail::refuse_long_list("A request", "parts", count, request.left());
    return count;
  }
  static void require_type(io::ElementType type) {
    if (type > io::ElementType::f64)
      throw ArchiveError("A request names no type of elements", text("number ", static_cast<unsigned>(type)),
                         "Start all processes of the job from one build of the program");
  }
  [[noreturn]] static void refuse_second(const ShardSpec& spec) {
    throw StoreError(Problem::shard_exists, text(to_string(spec), " cannot be created"),
                     "the server has a shard of this number", "Drop that one first, or take it over");
  }

  static void fill(Shard& shard, const detail::CreateHead& head, ArchiveReader& request) {
    const Shard::Locked locked = shard.lock();
    const std::span<std::byte> memory = locked.array(0);
    const auto require_bytes = [&](std::size_t expected) {
      if (head.bytes != expected)
        throw StoreError(Problem::wrong_size, text(to_string(head.spec), " does not fit its initial value"),
                         text("it takes ", expected, " bytes, and ", head.bytes, " were given"),
                         "Give one value, or one for each element");
    };
    switch (head.initial) {
      case detail::Initial::value: {
        require_bytes(io::bytes_of(head.type));
        std::byte bytes[8];
        const std::span<std::byte> element = std::span{bytes}.first(io::bytes_of(head.type));
        request.get_bytes(element);
        require_values(shard, element);
        io::with_element_type(head.type, [&]<class T>() {
          T value;
          std::memcpy(&value, element.data(), sizeof value);
          std::fill_n(reinterpret_cast<T*>(memory.data()), shard.elements(), value);
        });
        return;
      }
      case detail::Initial::elements:
        require_bytes(memory.size());
        request.get_bytes(memory);
        return require_values(shard, memory);
      case detail::Initial::function:
        return FunctionTable<FillShard>::find(request.get<CodePlace>())(request, head.spec.offset, locked.memory());
    }
    throw ArchiveError("A request has no kind of initial values", text("number ", static_cast<unsigned>(head.initial)),
                       "Start all processes of the job from one build of the program");
  }

  [[nodiscard]] static std::vector<std::int64_t> indices(ArchiveReader& request, std::uint64_t rows) {
    if (rows > request.left() / sizeof(std::int64_t))
      dist::detail::refuse_long_list("A request", "indices", rows, request.left());
    std::vector<std::int64_t> all(static_cast<std::size_t>(rows));
    request.get_bytes(std::as_writable_bytes(std::span{all}));
    return all;
  }
  static void require_rows(const Shard& shard, std::span<const std::int64_t> rows) {
    for (const std::int64_t row : rows)
      if (row < 0 || static_cast<std::uint64_t>(row) >= shard.spec().rows)
        throw StoreError(Problem::wrong_row, text(to_string(shard.spec()), " has no row ", row),
                         text("it has ", shard.spec().rows), "Give indices from 0 to the number of rows - 1");
  }
  /// `what` names a version of the shard, as in "A push comes from".
  static void require_version(const Shard& shard, std::uint64_t version, std::string_view what) {
    if (version != unknown_version && version > shard.version())
      throw ArchiveError(text(what, " a version that there was not"),
                         text("number ", version, " of ", to_string(shard.spec()), ", which is at ", shard.version()),
                         "Give the version that a pull or a push of this shard returned");
  }
  static void require_type(const Shard& shard, io::ElementType given) {
    if (shard.type() != given)
      throw StoreError(Problem::wrong_type, text(to_string(shard.spec()), " has elements of another type"),
                       text("they are ", io::to_string(shard.type()), ", those given are ", io::to_string(given)),
                       "Use the variable's element type");
  }

  /// Throws for bytes that are no values of the shard's type, as every number but 0 and 1 is no bool.
  static void require_values(const Shard& shard, rpc::Piece bytes) {
    if (shard.type() == io::ElementType::boolean &&
        std::any_of(bytes.begin(), bytes.end(), [](std::byte byte) { return byte > std::byte{1}; }))
      throw StoreError(Problem::wrong_value, text(to_string(shard.spec()), " holds bools"),
                       "a value given is neither 0 nor 1", "Give bools");
  }

  template <class T>
  static void require_value(const Shard& shard, double value) {
    if constexpr (std::integral<T>) {
      // Compared as doubles, in which the largest integers of 64 bits are rounded up.
      const bool fits = value >= static_cast<double>(std::numeric_limits<T>::lowest()) &&
                        value < static_cast<double>(std::numeric_limits<T>::max()) + (sizeof(T) < 8 ? 1.0 : 0.0);
      if (!fits)
        throw StoreError(Problem::wrong_value, text(to_string(shard.spec()), " cannot have a slot of this value"),
                         text(value, " is no ", io::to_string(shard.type())), "Give a value of the elements' type");
    }
  }

  [[nodiscard]] PushPart push_part(ArchiveReader& request) const {
    PushPart part;
    part.head = request.get<detail::PushHead>();
    part.update = detail::get_update(request);
    part.rows = indices(request, part.head.rows);
    part.values = request.get_pieces(part.head.bytes);
    part.shard = require(part.head.shard);
    return part;
  }
  /// Throws unless the part can be applied.
  static void check(const PushPart& part) {
    const Shard& shard = *part.shard;
    const bool dense = part.head.form == detail::Form::dense;
    const bool uniform = part.head.form == detail::Form::uniform;
    if (part.head.form > detail::Form::rows_summed || ((dense || uniform) && !part.rows.empty()))
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
  [[nodiscard]] static Pushed apply(const PushPart& part) {
    Shard::Locked locked = part.shard->lock();
    const PushOptions& options = part.head.options;
    const bool known = options.version != unknown_version;
    const std::uint64_t behind = known ? locked.version() - options.version : 0;
    if (behind > options.max_staleness) {
      locked.count_refusal();
      return {locked.version(), behind, false};
    }
    const ShardMemory memory = locked.memory(options.first_slot, part.update->slots());
    if (part.head.form == detail::Form::dense)
      part.update->apply(memory, part.values);
    else if (part.head.form == detail::Form::uniform)
      part.update->apply_uniform(memory, part.values);
    else
      part.update->apply_rows(memory, part.rows, part.values,
                              part.head.form == detail::Form::rows_summed ? Repeats::summed : Repeats::in_order);
    locked.count_push(behind, known);
    return {locked.version(), behind};
  }

  [[nodiscard]] PullPart pull_part(ArchiveReader& request) const {
    PullPart part;
    part.head = request.get<detail::PullHead>();
    require_type(part.head.type);
    part.rows = indices(request, part.head.rows);
    part.shard = require(part.head.shard);
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
    return part;
  }
  /// The version of what was copied.
  [[nodiscard]] static std::uint64_t copy(const PullPart& part, std::byte* to) {
    const Shard::Locked locked = part.shard->lock();
    const std::span<const std::byte> from = locked.array(part.head.options.array);
    if (part.head.all) {
      if (!from.empty()) std::memcpy(to, from.data(), from.size());
    } else {
      const std::size_t width = part.shard->row_bytes();
      for (std::size_t i = 0; i < part.rows.size() && width > 0; ++i)
        std::memcpy(to + i * width, from.data() + static_cast<std::size_t>(part.rows[i]) * width, width);
    }
    return locked.version();
  }

 private:
  mutable std::mutex mutex_;  ///< of the list, not of what the shards hold
  std::map<ShardId, std::shared_ptr<Shard>> shards_;
  Callers callers_;
};

DIST_INLINE Store::Store()
    : incarnation_(net::random_number()), pool_(std::make_shared<BufferPool>()), shards_(std::make_unique<Shards>()) {}
DIST_INLINE Store::~Store() = default;

DIST_INLINE ArchiveWriter Store::reply() const {
  ArchiveWriter writer;
  writer.put(std::uint8_t{0}).put(incarnation_);
  return writer;
}

DIST_INLINE std::vector<std::byte> Store::greet(ArchiveReader& request) const {
  const auto program = request.get<std::string>();
  request.expect_end();
  if (program != binary_identity())
    throw StoreError(Problem::other_program, "A caller runs another program than this server",
                     text("its build is ", quoted(program), ", the server's ", binary_identity()),
                     "Start all tasks of the job from one build");
  return reply().take();
}

DIST_INLINE std::vector<std::byte> Store::create(ArchiveReader& request) {
  const auto envelope = Shards::envelope_of(request, incarnation_);
  const auto head = request.get<detail::CreateHead>();
  Shards::require_type(head.type);
  shards_->callers().once(envelope, [&] {
    if (shards_->find(head.spec.id) != nullptr) Shards::refuse_second(head.spec);
    auto shard = std::make_shared<Shard>(head.spec, head.type);
    Shards::fill(*shard, head, request);
    request.expect_end();
    shards_->add(head.spec, std::move(shard));
  });
  return reply().take();
}

DIST_INLINE std::vector<std::byte> Store::ensure_slots(ArchiveReader& request) {
  const auto envelope = Shards::envelope_of(request, incarnation_);
  const auto id = request.get<ShardId>();
  const auto first = request.get<std::uint64_t>();
  const auto values = request.get<std::vector<double>>();
  request.expect_end();
  shards_->callers().once(envelope, [&] {
    const std::shared_ptr<Shard> shard = shards_->require(id);
    io::with_element_type(shard->type(), [&]<class T>() {
      for (const double value : values) Shards::require_value<T>(*shard, value);
      shard->lock().ensure_slots(first, values.size(), [&](std::size_t slot, std::span<std::byte> memory) {
        if (values[slot] != 0)
          std::fill_n(reinterpret_cast<T*>(memory.data()), shard->elements(), static_cast<T>(values[slot]));
      });
    });
  });
  return reply().take();
}

DIST_INLINE std::vector<std::byte> Store::drop(ArchiveReader& request) {
  const auto envelope = Shards::envelope_of(request, incarnation_);
  const auto ids = request.get<std::vector<ShardId>>();
  request.expect_end();
  shards_->callers().once(envelope, [&] {
    for (const ShardId id : ids) static_cast<void>(shards_->require(id));
    shards_->erase(ids);
  });
  return reply().take();
}

DIST_INLINE std::vector<std::byte> Store::list(ArchiveReader& request) const {
  static_cast<void>(Shards::envelope_of(request, incarnation_));
  request.expect_end();
  return reply().put(shards_->list()).take();
}

DIST_INLINE std::vector<std::byte> Store::staleness(ArchiveReader& request) const {
  static_cast<void>(Shards::envelope_of(request, incarnation_));
  const auto ids = request.get<std::vector<ShardId>>();
  request.expect_end();
  std::vector<Staleness> all;
  for (const ShardId id : ids) all.push_back(shards_->require(id)->lock().staleness());
  return reply().put(all).take();
}

DIST_INLINE std::vector<std::byte> Store::push(ArchiveReader& request) {
  const auto envelope = Shards::envelope_of(request, incarnation_);
  std::vector<Shards::PushPart> parts(Shards::counted<detail::PushHead>(request));
  for (Shards::PushPart& part : parts) part = shards_->push_part(request);
  request.expect_end();
  const auto of_each = [&](const auto& push_to) {
    std::vector<Pushed> pushed;
    for (const Shards::PushPart& part : parts) pushed.push_back(push_to(part));
    return pushed;
  };
  const std::vector<Pushed> pushed = shards_->callers().once(
      envelope,
      [&] {
        for (const Shards::PushPart& part : parts) Shards::check(part);
        return of_each([](const Shards::PushPart& part) { return Shards::apply(part); });
      },
      [&] { return of_each([](const Shards::PushPart& part) {
              return Pushed{part.shard->version(), 0};
            }); });
  return reply().put(pushed).take();
}

DIST_INLINE Store::Snapshot Store::pull(ArchiveReader& request) const {
  static_cast<void>(Shards::envelope_of(request, incarnation_));
  std::vector<Shards::PullPart> parts(Shards::counted<detail::PullHead>(request));
  std::uint64_t size = 0;
  for (Shards::PullPart& part : parts) {
    part = shards_->pull_part(request);
    size += part.bytes;
  }
  request.expect_end();
  Snapshot snapshot{{}, pool_->take(static_cast<std::size_t>(size)), static_cast<std::size_t>(size), pool_};
  std::vector<detail::PullSeen> seen;
  seen.reserve(parts.size());
  std::byte* to = snapshot.buffer.data();
  for (const Shards::PullPart& part : parts) {
    seen.push_back({part.is_known ? part.head.options.known : Shards::copy(part, to), part.bytes});
    to += part.bytes;
  }
  snapshot.head = reply().put(seen).take();
  return snapshot;
}

namespace detail {

[[nodiscard]] inline std::vector<std::byte> refused(Problem problem, std::string_view said, std::string_view why,
                                                    std::string_view suggestion) {
  ArchiveWriter writer;
  writer.put(problem).put(std::string{said}).put(std::string{why}).put(std::string{suggestion});
  return writer.take();
}
DIST_INLINE std::vector<std::byte> refusal(const StoreError& error) {
  return refused(error.problem(), error.said(), error.why(), error.suggestion());
}
DIST_INLINE std::vector<std::byte> refusal(const ArchiveError& error) {
  return refused(Problem::malformed, "A server does not understand a request", error.what(),
                 "Start all tasks of the job from one build");
}

}  // namespace detail

}  // namespace dist::server
