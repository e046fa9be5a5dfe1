#pragma once

#include <concepts>
#include <cstring>
#include <limits>
#include <span>
#include <string>

#include <dist/io/element_type.hpp>
#include <dist/net/secret.hpp>
#include <dist/server/duplicate_filter.hpp>
#include <dist/server/parts.hpp>
#include <dist/server/registry.hpp>
#include <dist/server/shard.hpp>
#include <dist/server/shard_server.hpp>
#include <dist/server/store_memory.hpp>
#include <dist/server/update.hpp>
#include <dist/server/wire.hpp>

namespace dist::server {

namespace detail {

/// Reads the header. Throws StoreError if it is for another incarnation.
[[nodiscard]] inline RequestHeader envelope_of(ArchiveReader& request, std::uint64_t store) {
  const auto envelope = request.get<RequestHeader>();
  if (envelope.store != store)
    throw StoreError(Problem::lost_variables, "This server has lost its variables", "it was started again",
                     "Restore a checkpoint");
  return envelope;
}
[[gnu::cold]] inline void fill(Shard& shard, const CreateHead& head, ArchiveReader& request) {
  const Shard::Locked locked = shard.lock();
  const std::span<std::byte> memory = locked.array(0);
  const auto require_bytes = [&](std::size_t expected) {
    if (head.bytes != expected)
      throw StoreError(Problem::wrong_size, concat(to_string(head.spec), " does not fit its initial value"),
                       concat("it takes ", expected, " bytes, and ", head.bytes, " were given"),
                       "Give one value, or one for each element");
  };
  switch (head.initial) {
    case InitialValue::value: {
      require_bytes(io::bytes_of(head.type));
      std::byte bytes[8];
      const std::span<std::byte> element = std::span{bytes}.first(io::bytes_of(head.type));
      request.get_bytes(element);
      require_values(shard, element);
      return fill_elements(memory, element);
    }
    case InitialValue::elements:
      require_bytes(memory.size());
      request.get_bytes(memory);
      return require_values(shard, memory);
    case InitialValue::function:
      return FunctionTable<FillShard>::find(request.get<FunctionId>())(request, head.spec.offset, locked.memory());
  }
  throw ArchiveError("A request has an unknown kind of initial values",
                     concat("number ", static_cast<unsigned>(head.initial)),
                     "Start all processes of the job from one build of the program");
}

/// Throws StoreError if the value is out of range.
template <class T>
[[nodiscard]] T slot_value(const Shard& shard, double value) {
  if constexpr (std::integral<T>) {
    // The comparison is in double, in which the largest 64-bit integers are rounded up.
    const bool fits = value >= static_cast<double>(std::numeric_limits<T>::lowest()) &&
                      value < static_cast<double>(std::numeric_limits<T>::max()) + (sizeof(T) < 8 ? 1.0 : 0.0);
    if (!fits)
      throw StoreError(Problem::wrong_value, concat(to_string(shard.spec()), " cannot have a slot of this value"),
                       concat(value, " is not a value of type ", io::to_string(shard.type())),
                       "Give a value of the element type");
  }
  return static_cast<T>(value);
}

}  // namespace detail

DIST_INLINE ShardServer::ShardServer(Reach reach)
    : incarnation_(net::random_number()),
      pool_(std::make_shared<BufferPool>()),
      shards_(std::make_shared<ShardTable>(std::make_shared<StoreMemory>(reach, incarnation_))),
      callers_(std::make_unique<DuplicateFilter>()) {
  ShardTable::publish(incarnation_, shards_);
}
DIST_INLINE ShardServer::~ShardServer() { shards_->memory()->close(); }

DIST_INLINE ArchiveWriter ShardServer::reply() const {
  ArchiveWriter writer;
  writer.put(std::uint8_t{0}).put(incarnation_);
  return writer;
}

[[gnu::cold]] DIST_INLINE std::vector<std::byte> ShardServer::greet(ArchiveReader& request) const {
  const auto program = request.get<std::string>();
  request.expect_end();
  if (program != binary_identity())
    throw StoreError(Problem::other_program, "A caller runs a different program from this server",
                     concat("its build is ", quoted(program), ", the server's build is ", binary_identity()),
                     "Start all tasks of the job from one build");
  return reply().take();
}

[[gnu::cold]] DIST_INLINE std::vector<std::byte> ShardServer::create(ArchiveReader& request) {
  const auto envelope = detail::envelope_of(request, incarnation_);
  const auto head = request.get<detail::CreateHead>();
  detail::require_known(head.type);
  callers_->once(envelope, [&] {
    if (shards_->find(head.spec.id) != nullptr) ShardTable::refuse_second(head.spec);
    auto shard = std::make_shared<Shard>(shards_->memory(), head.spec, head.type);
    detail::fill(*shard, head, request);
    request.expect_end();
    shards_->add(std::move(shard));
  });
  return reply().take();
}

[[gnu::cold]] DIST_INLINE std::vector<std::byte> ShardServer::ensure_slots(ArchiveReader& request) {
  const auto envelope = detail::envelope_of(request, incarnation_);
  const auto id = request.get<ShardId>();
  const auto first = request.get<std::uint64_t>();
  const auto values = request.get<std::vector<double>>();
  request.expect_end();
  callers_->once(envelope, [&] {
    const std::shared_ptr<Shard> shard = shards_->require(id);
    const std::size_t size = io::bytes_of(shard->type());
    std::vector<std::byte> elements(values.size() * size);
    io::with_element_type(shard->type(), [&]<class T>() {
      for (std::size_t slot = 0; slot < values.size(); ++slot) {
        const T element = detail::slot_value<T>(*shard, values[slot]);
        std::memcpy(elements.data() + slot * size, &element, size);
      }
    });
    shard->lock().ensure_slots(first, values.size(), [&](std::size_t slot, std::span<std::byte> memory) {
      if (values[slot] != 0) detail::fill_elements(memory, Bytes{elements}.subspan(slot * size, size));
    });
  });
  return reply().take();
}

[[gnu::cold]] DIST_INLINE std::vector<std::byte> ShardServer::drop(ArchiveReader& request) {
  const auto envelope = detail::envelope_of(request, incarnation_);
  const auto ids = request.get<std::vector<ShardId>>();
  request.expect_end();
  callers_->once(envelope, [&] {
    for (const ShardId id : ids) static_cast<void>(shards_->require(id));
    shards_->erase(ids);
  });
  return reply().take();
}

[[gnu::cold]] DIST_INLINE std::vector<std::byte> ShardServer::list(ArchiveReader& request) const {
  static_cast<void>(detail::envelope_of(request, incarnation_));
  request.expect_end();
  return reply().put(shards_->list()).take();
}

[[gnu::cold]] DIST_INLINE std::vector<std::byte> ShardServer::staleness(ArchiveReader& request) const {
  static_cast<void>(detail::envelope_of(request, incarnation_));
  const auto ids = request.get<std::vector<ShardId>>();
  request.expect_end();
  std::vector<Staleness> all;
  for (const ShardId id : ids) all.push_back(shards_->require(id)->lock().staleness());
  return reply().put(all).take();
}

[[gnu::cold]] DIST_INLINE std::vector<std::byte> ShardServer::place(ArchiveReader& request) const {
  static_cast<void>(detail::envelope_of(request, incarnation_));
  request.expect_end();
  return reply().put(shards_->memory()->place()).take();
}

[[gnu::cold]] DIST_INLINE std::vector<std::byte> ShardServer::find(ArchiveReader& request) const {
  static_cast<void>(detail::envelope_of(request, incarnation_));
  const auto id = request.get<ShardId>();
  request.expect_end();
  return reply().put(shards_->require(id)->found()).take();
}

DIST_INLINE std::vector<std::byte> ShardServer::push(ArchiveReader& request) {
  const auto envelope = detail::envelope_of(request, incarnation_);
  const detail::DecodedPushes pushes{request};
  const std::vector<Pushed> pushed = callers_->once(
      envelope, [&] { return detail::apply(pushes.parts(), *shards_); },
      [&] {
        std::vector<Pushed> again;
        for (const detail::PushPart& part : pushes.parts())
          again.push_back({shards_->require(part.shard)->version(), 0});
        return again;
      });
  return reply().put(pushed).take();
}

DIST_INLINE ShardServer::Snapshot ShardServer::pull(ArchiveReader& request) const {
  static_cast<void>(detail::envelope_of(request, incarnation_));
  const detail::DecodedPulls pulls{request};
  std::vector<detail::FoundPull> found;
  found.reserve(pulls.parts().size());
  std::size_t size = 0;
  for (const detail::PullPart& part : pulls.parts()) size += found.emplace_back(detail::find(part, *shards_)).bytes;
  Snapshot snapshot{{}, pool_->take(size), size, pool_};
  std::vector<detail::PulledShardHeader> seen;
  seen.reserve(found.size());
  std::byte* to = snapshot.buffer.data();
  for (std::size_t i = 0; i < found.size(); ++i) {
    seen.push_back({detail::copy(pulls.parts()[i], found[i], to), found[i].bytes});
    to += found[i].bytes;
  }
  snapshot.head = reply().put(seen).take();
  return snapshot;
}

namespace detail {

[[gnu::cold]] DIST_INLINE std::vector<std::byte> refusal(const StoreError& error) {
  ArchiveWriter writer;
  writer.put(error.problem()).put(error.said()).put(error.why()).put(error.suggestion());
  return writer.take();
}
[[gnu::cold]] DIST_INLINE std::vector<std::byte> refusal(const ArchiveError& error) {
  return refusal(malformed(error));
}

}  // namespace detail

}  // namespace dist::server
