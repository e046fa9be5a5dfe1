#include <dist/server/wire.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <dist/core/reduce_op.hpp>
#include <dist/server/requests.hpp>

#include "support/what_throws.hpp"

namespace {

namespace rpc = dist::rpc;
namespace server = dist::server;
using dist::ArchiveError;
using dist::io::ElementType;

/// A pull of three shards, one of which the caller already has.
struct Pulled {
  Pulled() {
    request.dense(1, std::span{weights}).dense(2, std::span{unchanged}, {.known = 9}).rows(3, indices, std::span{rows});
  }

  std::vector<float> weights = std::vector<float>(3);
  std::vector<float> unchanged = {-1};
  std::vector<std::int64_t> indices = {0, 1};
  std::vector<double> rows = std::vector<double>(2);
  server::PullRequest request;
};

dist::ArchiveWriter reply_to_pull(const std::vector<server::detail::PulledShardHeader>& seen) {
  dist::ArchiveWriter reply;
  reply.put(server::Problem{}).put(std::uint64_t{42}).put(seen);
  return reply;
}
std::vector<std::uint64_t> versions_of(const server::detail::PullReply& taken) {
  dist::ArchiveReader head{taken.head(), "A reply"};
  static_cast<void>(head.get<server::Problem>());
  CHECK(head.get<std::uint64_t>() == 42);
  return taken.versions(head);
}

}  // namespace

TEST_CASE("values and indices are sent without copying") {
  const std::vector<float> values(6, 1);
  const std::vector<std::int64_t> rows{1, 2, 1};
  server::PushRequest push;
  push.dense(1, dist::sum, std::span<const float>{values})
      .rows(2, dist::max, rows, std::span<const float>{values}, server::DuplicateRows::in_order);
  server::detail::Message message;
  server::detail::encode(push.parts(), message);
  const rpc::ChunkList pieces = message.pieces();
  REQUIRE(pieces.size() == 5);
  CHECK(pieces[1].data() == reinterpret_cast<const std::byte*>(values.data()));
  CHECK(pieces[1].size() == 24);
  CHECK(pieces[3].data() == reinterpret_cast<const std::byte*>(rows.data()));
  CHECK(pieces[4].data() == pieces[1].data());

  dist::ArchiveReader reader{pieces};
  CHECK(reader.get<std::uint32_t>() == 2);
  const auto first = reader.get<server::detail::PushHead>();
  CHECK(first.shard == 1);
  CHECK(first.form == server::detail::PushEncoding::dense);
  CHECK(first.bytes == 24);
  CHECK(first.options.version == server::unknown_version);
  CHECK(server::detail::get_update(reader)->type() == dist::io::ElementType::f32);
  static_cast<void>(reader.get_pieces(24));
  const auto second = reader.get<server::detail::PushHead>();
  CHECK(second.rows == 3);
  CHECK(second.form == server::detail::PushEncoding::rows_in_order);
}

TEST_CASE("decoding restores the encoded parts, for any division of the bytes") {
  const std::vector<float> values{1, 2, 3, 4};
  const std::vector<std::int64_t> rows{1, 0};
  server::PushRequest push;
  push.dense(1, dist::sum, std::span{values}, {.version = 3, .max_staleness = 1})
      .uniform(2, dist::max, 2.5)
      .rows(3, dist::sum, rows, std::span{values}, server::DuplicateRows::summed);
  std::vector<float> to(2);
  server::PullRequest pull;
  pull.dense(1, std::span{to}, {.known = 5, .array = 3}).rows(2, rows, std::span{to});
  server::detail::Message pushes, pulls;
  server::detail::encode(push.parts(), pushes);
  server::detail::encode(pull.parts(), pulls);
  for (const std::size_t size : {1U, 3U, 1000U}) {
    const auto cut = [&](const std::vector<std::byte>& bytes) {
      std::vector<rpc::Chunk> pieces;
      for (std::size_t at = 0; at < bytes.size(); at += size)
        pieces.push_back(rpc::Chunk{bytes}.subspan(at, std::min(size, bytes.size() - at)));
      return pieces;
    };
    const std::vector<std::byte> push_bytes = rpc::joined(pushes.pieces()), pull_bytes = rpc::joined(pulls.pieces());
    const std::vector<rpc::Chunk> push_pieces = cut(push_bytes), pull_pieces = cut(pull_bytes);
    dist::ArchiveReader push_reader{push_pieces}, pull_reader{pull_pieces};
    const server::detail::DecodedPushes decoded{push_reader};
    REQUIRE(decoded.parts().size() == 3);
    for (std::size_t i = 0; i < 3; ++i) {
      const server::detail::PushPart &part = decoded.parts()[i], &original = push.parts()[i];
      CHECK(part.shard == original.shard);
      CHECK(part.form == original.form);
      CHECK(part.options.version == original.options.version);
      CHECK(part.options.max_staleness == original.options.max_staleness);
      CHECK(part.update->type() == original.update->type());
      CHECK(std::vector(part.rows.begin(), part.rows.end()) == std::vector(original.rows.begin(), original.rows.end()));
      const auto bytes_of = [](server::BytesList pieces) { return rpc::joined(pieces); };
      CHECK(part.values.use(bytes_of) == original.values.use(bytes_of));
    }
    const server::detail::DecodedPulls wanted{pull_reader};
    REQUIRE(wanted.parts().size() == 2);
    CHECK(wanted.parts()[0].options.known == 5);
    CHECK(wanted.parts()[0].options.array == 3);
    CHECK(wanted.parts()[0].all);
    CHECK(wanted.parts()[1].rows.size() == 2);
    CHECK(wanted.parts()[1].rows[0] == 1);
  }
}

TEST_CASE("a reply to a pull is processed as it arrives, for any division") {
  const std::vector<float> weights{1, 2, 3};
  const std::vector<double> rows{4, 5};
  dist::ArchiveWriter reply = reply_to_pull({{7, 12}, {9, 0}, {8, 16}});
  reply.put_bytes(weights.data(), 12).put_bytes(rows.data(), 16);
  const rpc::Chunk all = reply.content();
  for (std::size_t cut = 0; cut <= all.size(); ++cut) {
    Pulled pulled;
    server::detail::PullReply taken{pulled.request.parts()};
    taken.take(all.first(cut));
    taken.take(all.subspan(cut));
    CHECK(versions_of(taken) == std::vector<std::uint64_t>{7, 9, 8});
    CHECK(pulled.weights == weights);
    CHECK(pulled.unchanged == std::vector<float>{-1});
    CHECK(pulled.rows == rows);
  }
  Pulled pulled;
  server::detail::PullReply taken{pulled.request.parts()};
  for (const std::byte& byte : all) taken.take({&byte, 1});
  CHECK(versions_of(taken).size() == 3);
  CHECK(pulled.rows == rows);
}

TEST_CASE("replies that do not match the pull are rejected") {
  const auto refused = [](const dist::ArchiveWriter& reply) {
    Pulled pulled;
    server::detail::PullReply taken{pulled.request.parts()};
    taken.take(reply.content());
    return support::what_throws<dist::Error>([&] { versions_of(taken); });
  };
  const std::vector<std::byte> bytes(100);
  const auto with = [&](const std::vector<server::detail::PulledShardHeader>& seen, std::size_t count) {
    dist::ArchiveWriter reply = reply_to_pull(seen);
    reply.put_bytes(bytes.data(), count);
    return reply;
  };
  CHECK(refused(with({{7, 12}, {9, 0}, {8, 16}}, 28)) == "nothing was thrown");
  CHECK(refused(with({{7, 12}, {9, 0}, {8, 16}}, 20)).starts_with("A reply ends early"));
  CHECK(refused(with({{7, 12}, {9, 0}, {8, 16}}, 29)).starts_with("A reply is longer than its values"));
  CHECK(refused(with({{7, 12}, {9, 0}, {8, 8}}, 20)) ==
        "A pull of shard 3 does not fit its memory (its elements are 8 bytes, the memory has 16). Give memory of the "
        "size of the shard.");
  CHECK(refused(with({{7, 12}, {9, 0}}, 28)).starts_with("A reply is for another request (2 shards, not 3)"));
  CHECK(refused(with({}, 0)).starts_with("A reply is for another request (0 shards, not 3)"));

  // The text may be longer than the head of a reply.
  const std::string why(300, 'x');
  dist::ArchiveWriter refusal;
  refusal.put(server::Problem::unknown_shard).put(why);
  Pulled pulled;
  server::detail::PullReply taken{pulled.request.parts()};
  for (const std::byte& byte : refusal.content()) taken.take({&byte, 1});
  CHECK(taken.head().size() == refusal.content().size());
  dist::ArchiveReader reader{taken.head()};
  CHECK(reader.get<server::Problem>() == server::Problem::unknown_shard);
  CHECK(reader.get<std::string>() == why);
}

TEST_CASE("invalid requests are rejected") {
  CHECK_NOTHROW(server::detail::require_known(ElementType::f64));
  CHECK_THROWS_AS(server::detail::require_known(static_cast<ElementType>(200)), ArchiveError);
  const ArchiveError error{"A list is too long", "it has 9 entries", ""};
  CHECK(server::detail::malformed(error).problem() == server::Problem::malformed);
  CHECK(std::string{server::detail::malformed(error).what()}.find(error.what()) != std::string::npos);
}
