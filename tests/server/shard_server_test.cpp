#include <dist/server/shard_server.hpp>

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dist/rpc/rpc.hpp>
#include <dist/server/requests.hpp>
#include <dist/server/wire.hpp>

#include <doctest/doctest.h>

#include "support/what_throws.hpp"

namespace {

namespace rpc = dist::rpc;
namespace server = dist::server;
using dist::ArchiveError;
using dist::ArchiveReader;
using dist::StoreError;
using server::Problem;
using server::Pushed;
using server::ShardServer;
using server::detail::RequestHeader;

template <class... Values>
std::vector<std::byte> request(const RequestHeader& envelope, const Values&... values) {
  dist::ArchiveWriter writer;
  writer.put(envelope);
  (writer.put(values), ...);
  return writer.take();
}
template <class Request>
std::vector<std::byte> bytes_of(const RequestHeader& envelope, const Request& wanted) {
  server::detail::Message message;
  message.archive().put(envelope);
  encode(wanted.parts(), message);
  return rpc::joined(message.pieces());
}
/// Decodes a reply after the store's number.
template <class Value>
Value said(const ShardServer& store, const std::vector<std::byte>& reply) {
  ArchiveReader reader{reply};
  CHECK(reader.get<Problem>() == Problem{});
  CHECK(reader.get<std::uint64_t>() == store.incarnation());
  auto value = reader.get<Value>();
  reader.expect_end();
  return value;
}

/// A store with a shard of floats.
struct Held {
  Held() {
    const server::detail::CreateHead head{
        {1, "w", 2, 2, 0}, dist::io::ElementType::f32, server::detail::InitialValue::value, 4};
    const std::vector<std::byte> bytes = request(as(9, 1), head, 0.0f);
    ArchiveReader reader{bytes};
    store.create(reader);
  }
  [[nodiscard]] RequestHeader as(std::uint64_t client, std::uint64_t ordinal) const {
    return {store.incarnation(), client, ordinal};
  }
  Pushed push(std::uint64_t client, std::uint64_t ordinal) {
    const std::vector<std::byte> bytes =
        bytes_of(as(client, ordinal), server::PushRequest{}.dense(1, dist::sum, std::span<const float>{ones}));
    ArchiveReader reader{bytes};
    return said<std::vector<Pushed>>(store, store.push(reader)).at(0);
  }
  [[nodiscard]] ShardServer::Snapshot pull(const server::PullRequest& wanted) const {
    const std::vector<std::byte> bytes = bytes_of(as(0, 0), wanted);
    ArchiveReader reader{bytes};
    return store.pull(reader);
  }
  [[nodiscard]] std::vector<float> elements() const {
    std::vector<float> values(4);
    const ShardServer::Snapshot snapshot = pull(server::PullRequest{}.dense(1, std::span{values}));
    std::memcpy(values.data(), snapshot.buffer.data(), snapshot.size);
    return values;
  }

  ShardServer store;
  std::vector<float> ones = std::vector<float>(4, 1);
};

struct ByNorms {
  static constexpr std::array<std::string_view, 0> slots{};
  static constexpr bool has_two_passes = true;
  float scale = 1;
  float decay = 0;
  float direction(float gradient, float*) const { return gradient; }
  float operator()(float weight, float direction, float*) const { return weight - scale * direction; }
};

template <class Fn>
Problem problem_of(Fn&& fn) {
  try {
    fn();
  } catch (const StoreError& error) {
    return error.problem();
  }
  FAIL("nothing was thrown");
  return Problem{};
}

}  // namespace

TEST_CASE("a repeated push gets a reply, but is not applied again") {
  Held held;
  CHECK(held.push(9, 2) == Pushed{1, 0});
  CHECK(held.push(9, 2) == Pushed{1, 0});
  CHECK(held.push(9, 4) == Pushed{2, 0});
  CHECK(held.push(9, 3) == Pushed{3, 0});  // overtaken by a later push
  CHECK(held.push(9, 3) == Pushed{3, 0});
  CHECK(held.push(8, 2) == Pushed{4, 0});  // another client
  CHECK(held.elements() == std::vector<float>(4, 4));
}

TEST_CASE("a rejected push may be repeated") {
  Held held;
  const auto rows = std::vector<std::int64_t>{5};
  const std::vector<float> row(2);
  const std::vector<std::byte> wrong = bytes_of(
      held.as(9, 2),
      server::PushRequest{}.rows(1, dist::sum, rows, std::span<const float>{row}, server::DuplicateRows::in_order));
  ArchiveReader reader{wrong};
  CHECK(problem_of([&] { held.store.push(reader); }) == Problem::wrong_row);
  CHECK(held.push(9, 2) == Pushed{1, 0});
}

TEST_CASE("an update that needs all elements rejects values of some rows") {
  Held held;
  const auto problem = [&](const server::PushRequest& request) {
    const std::vector<std::byte> bytes = bytes_of(held.as(9, 2), request);
    ArchiveReader reader{bytes};
    return problem_of([&] { held.store.push(reader); });
  };
  const auto rows = std::vector<std::int64_t>{1};
  CHECK(problem(server::PushRequest{}.uniform(1, ByNorms{}, 1.0F)) == Problem::wrong_size);
  CHECK(problem(server::PushRequest{}.rows(1, ByNorms{}, rows, std::span<const float>{held.ones}.first(2),
                                           server::DuplicateRows::summed)) == Problem::wrong_size);
  CHECK(held.push(9, 2) == Pushed{1, 0});
  CHECK(held.elements() == held.ones);
}

TEST_CASE("a push older than the filter's window is rejected") {
  Held held;
  held.push(9, 2 + rpc::NonceFilter::width);
  CHECK(problem_of([&] { held.push(9, 2); }) == Problem::old_push);
  CHECK_NOTHROW(held.push(9, 3));
}

TEST_CASE("a push rejected as too stale is rejected again, regardless of later pushes") {
  Held held;
  const auto push = [&](std::uint64_t ordinal, std::uint64_t version, std::uint64_t most) {
    const std::vector<std::byte> bytes =
        bytes_of(held.as(9, ordinal),
                 server::PushRequest{}.uniform(1, dist::sum, 1.0F, {.version = version, .max_staleness = most}));
    ArchiveReader reader{bytes};
    return said<std::vector<Pushed>>(held.store, held.store.push(reader)).at(0);
  };
  CHECK(push(2, 0, 0) == Pushed{1, 0, true});
  CHECK(push(3, 0, 0) == Pushed{1, 1, false});
  CHECK(push(4, 1, 0) == Pushed{2, 0, true});
  CHECK(push(4, 1, 0) == Pushed{2, 0, true});  // a repetition, which would be too stale now
  CHECK(push(3, 0, 0) == Pushed{1, 1, false});
  CHECK(held.elements() == std::vector<float>(4, 2));
}

TEST_CASE("requests for another store, without a number or of another program are rejected") {
  Held held;
  const auto refused = [&](const RequestHeader& envelope) {
    const std::vector<std::byte> bytes = bytes_of(envelope, server::PushRequest{});
    ArchiveReader reader{bytes};
    held.store.push(reader);
  };
  CHECK(problem_of([&] { refused({held.store.incarnation() + 1, 9, 2}); }) == Problem::lost_variables);
  CHECK_THROWS_AS(refused(held.as(9, 0)), ArchiveError);
  CHECK_THROWS_AS(refused(held.as(0, 2)), ArchiveError);
  CHECK(ShardServer{}.incarnation() != held.store.incarnation());

  const std::vector<std::byte> own = dist::to_bytes(dist::binary_identity()),
                               other = dist::to_bytes(std::string{"abcd"});
  ArchiveReader of_own{own}, of_other{other};
  CHECK_NOTHROW(held.store.greet(of_own));
  CHECK(support::what_throws<StoreError>([&] { static_cast<void>(held.store.greet(of_other)); }) ==
        "A caller runs a different program from this server (its build is 'abcd', the server's build is " +
            dist::binary_identity() + "). Start all tasks of the job from one build.");
}

TEST_CASE("truncated and modified requests are rejected, and change nothing") {
  Held held;
  const std::vector<std::int64_t> rows{1, 0};
  const std::vector<std::byte> valid = bytes_of(
      held.as(7, 1), server::PushRequest{}
                         .dense(1, dist::sum, std::span<const float>{held.ones})
                         .uniform(1, dist::min, 5.0F)
                         .rows(1, dist::max, rows, std::span<const float>{held.ones}, server::DuplicateRows::summed));
  const auto push = [&](std::span<const std::byte> bytes) {
    ArchiveReader reader{bytes};
    try {
      held.store.push(reader);
      return true;
    } catch (const StoreError&) {
    } catch (const ArchiveError&) {
    }
    return false;
  };
  for (std::size_t size = 0; size < valid.size(); ++size) CHECK_FALSE(push(std::span{valid}.first(size)));
  CHECK(held.elements() == std::vector<float>(4, 0));
  // The values may be any numbers; all bytes after the header and before the values are validated.
  const std::size_t values = 2 * sizeof(float) * held.ones.size();
  for (std::size_t at = sizeof(RequestHeader); at + values < valid.size(); ++at)
    for (const int bit : {0, 3, 7}) {
      std::vector<std::byte> changed = valid;
      changed[at] ^= std::byte{1} << bit;
      push(changed);
    }
  CHECK(push(valid));
}

TEST_CASE("a pull with the current version gets only the version, until the shard changes") {
  Held held;
  std::vector<float> to(4);
  const auto pull = [&](std::uint64_t known) {
    return held.pull(server::PullRequest{}.dense(1, std::span{to}, {.known = known}).dense(1, std::span{to}));
  };
  CHECK(pull(0).size == 16);
  held.push(9, 2);
  const ShardServer::Snapshot both = pull(0);
  CHECK(both.size == 32);
  using Seen = std::vector<server::detail::PulledShardHeader>;
  const auto seen = said<Seen>(held.store, pull(1).head);
  REQUIRE(seen.size() == 2);
  CHECK(seen[0].version == 1);
  CHECK(seen[0].bytes == 0);
  CHECK(seen[1].version == 1);
  CHECK(seen[1].bytes == 16);
  CHECK(support::what_throws<StoreError>([&] { (void)pull(2); }) ==
        "A pull names a version that does not exist (number 2 of Shard 'w' (number 1), which is at 1). Give the "
        "version that a pull or a push of this shard returned.");
}

TEST_CASE("truncated and modified pulls are rejected, or answered with the requested elements") {
  Held held;
  std::vector<float> to(4);
  const std::vector<std::int64_t> rows{1, 0};
  const server::PullRequest wanted =
      std::move(server::PullRequest{}.dense(1, std::span{to}, {.known = 0}).rows(1, rows, std::span{to}));
  const std::vector<std::byte> valid = bytes_of(held.as(0, 0), wanted);
  const auto pull = [&](std::span<const std::byte> bytes) {
    ArchiveReader reader{bytes};
    try {
      const std::size_t answered = held.store.pull(reader).size;
      CHECK(answered <= 2 * 16);
      return true;
    } catch (const StoreError&) {
    } catch (const ArchiveError&) {
    }
    return false;
  };
  for (std::size_t size = 0; size < valid.size(); ++size) CHECK_FALSE(pull(std::span{valid}.first(size)));
  for (std::size_t at = sizeof(RequestHeader); at < valid.size(); ++at)
    for (const int bit : {0, 3, 7}) {
      std::vector<std::byte> changed = valid;
      changed[at] ^= std::byte{1} << bit;
      pull(changed);
    }
  CHECK(pull(valid));
}

TEST_CASE("repeated create requests create a shard once") {
  Held held;
  const server::detail::CreateHead head{
      {2, "v", 3, 1, 0}, dist::io::ElementType::i32, server::detail::InitialValue::elements, 12};
  const std::vector<std::byte> bytes = request(held.as(9, 2), head, 1, 2, 3);
  for (int again = 0; again < 2; ++again) {
    ArchiveReader reader{bytes};
    CHECK_NOTHROW(held.store.create(reader));
  }
  const std::vector<std::byte> other = request(held.as(9, 3), head, 1, 2, 3);
  ArchiveReader reader{other};
  CHECK(problem_of([&] { held.store.create(reader); }) == Problem::shard_exists);
  const auto wrong = [&](std::uint64_t ordinal, const auto& its, const auto&... values) {
    const std::vector<std::byte> request_of = request(held.as(9, ordinal), its, values...);
    ArchiveReader reading{request_of};
    held.store.create(reading);
  };
  auto bad = head;
  bad.spec.id = 3;
  bad.type = static_cast<dist::io::ElementType>(13);
  CHECK_THROWS_AS(wrong(4, bad, 1, 2, 3), ArchiveError);
  bad.type = head.type;
  bad.initial = static_cast<server::detail::InitialValue>(3);
  CHECK_THROWS_AS(wrong(5, bad, 1, 2, 3), ArchiveError);
  bad.initial = server::detail::InitialValue::value;
  CHECK(problem_of([&] { wrong(6, bad, 1, 2, 3); }) == Problem::wrong_size);
  bad.initial = server::detail::InitialValue::function;
  CHECK_THROWS_AS(wrong(7, bad, dist::FunctionId{1, 2}), ArchiveError);
  bad.initial = server::detail::InitialValue::elements;
  CHECK_THROWS_AS(wrong(8, bad, 1, 2), ArchiveError);
  CHECK_THROWS_AS(wrong(9, bad, 1, 2, 3, 4), ArchiveError);
  CHECK_NOTHROW(wrong(10, bad, 1, 2, 3));
}

TEST_CASE("invalid bools are rejected") {
  Held held;
  const auto create = [&](std::uint64_t ordinal, server::detail::InitialValue initial, std::uint64_t bytes,
                          auto... values) {
    const server::detail::CreateHead head{{ordinal, "b", 2, 1, 0}, dist::io::ElementType::boolean, initial, bytes};
    const std::vector<std::byte> request_of = request(held.as(9, ordinal), head, static_cast<std::uint8_t>(values)...);
    ArchiveReader reader{request_of};
    held.store.create(reader);
  };
  CHECK(problem_of([&] { create(2, server::detail::InitialValue::value, 1, 2); }) == Problem::wrong_value);
  CHECK(problem_of([&] { create(3, server::detail::InitialValue::elements, 2, 1, 255); }) == Problem::wrong_value);
  create(4, server::detail::InitialValue::elements, 2, 1, 0);
  dist::ArchiveWriter push;
  push.put(held.as(9, 5))
      .put(std::uint32_t{1})
      .put(server::detail::PushHead{4, server::detail::PushEncoding::dense, 0, 2, {}});
  server::detail::TypedUpdate<dist::detail::Assign, bool>{{}}.write(push);
  push.put(std::uint8_t{1}).put(std::uint8_t{3});
  ArchiveReader reader{push.content()};
  CHECK(problem_of([&] { held.store.push(reader); }) == Problem::wrong_value);
}

TEST_CASE("slots have values of the elements' type") {
  Held held;
  const auto create = [&](std::uint64_t ordinal, dist::io::ElementType type) {
    const server::detail::CreateHead head{
        {ordinal, "n", 2, 1, 0}, type, server::detail::InitialValue::value, dist::io::bytes_of(type)};
    const std::vector<std::byte> bytes = request(held.as(9, ordinal), head, std::array<std::uint8_t, 8>{});
    ArchiveReader reader{std::span{bytes}.first(bytes.size() - 8 + dist::io::bytes_of(type))};
    held.store.create(reader);
  };
  const auto slots = [&](std::uint64_t shard, double value) {
    static std::uint64_t ordinal = 100;
    const std::vector<std::byte> bytes =
        request(held.as(9, ++ordinal), shard, std::uint64_t{0}, std::vector<double>{value});
    ArchiveReader reader{bytes};
    held.store.ensure_slots(reader);
  };
  create(2, dist::io::ElementType::u8);
  create(3, dist::io::ElementType::i64);
  create(4, dist::io::ElementType::f16);
  for (const double value : {256.0, -1.0, 1e300, std::nan("")})
    CHECK(problem_of([&] { slots(2, value); }) == Problem::wrong_value);
  CHECK(problem_of([&] { slots(3, 9.3e18); }) == Problem::wrong_value);
  CHECK_NOTHROW(slots(2, 255));
  CHECK_NOTHROW(slots(3, -9.2e18));
  CHECK_NOTHROW(slots(4, 0.1));
}
