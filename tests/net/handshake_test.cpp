#include <dist/net/handshake.hpp>

#include <doctest/doctest.h>

using dist::net::Endpoint;
using dist::net::FrameError;
using dist::net::Handshake;
using dist::net::list_checksum;
using dist::net::Nonce;
using dist::net::proof_of;
using dist::net::random_nonce;

namespace {

const Handshake someone{Handshake::Role::server, 3, 4, 0x1234567890abcdef, "node-1", "boot"};

}  // namespace

TEST_CASE("a hello is read as written") {
  const Handshake read = Handshake::from(someone.record());
  CHECK(read.role == Handshake::Role::server);
  CHECK(read.rank == 3);
  CHECK(read.world == 4);
  CHECK(read.checksum == 0x1234567890abcdef);
  CHECK(read.host == "node-1");
  CHECK(read.machine == "boot");
}

TEST_CASE("a hello that is cut, too long, without a valid role, or has an unprintable name is refused") {
  const std::vector<std::byte> record = someone.record();
  for (std::size_t size = 0; size < record.size(); ++size)
    CHECK_THROWS_AS(static_cast<void>(Handshake::from(std::span{record}.first(size))), FrameError);
  std::vector<std::byte> longer = record;
  longer.push_back({});
  CHECK_THROWS_AS(static_cast<void>(Handshake::from(longer)), FrameError);
  std::vector<std::byte> roleless = record;
  roleless[0] = std::byte{3};
  CHECK_THROWS_AS(static_cast<void>(Handshake::from(roleless)), FrameError);
  Handshake painted = someone;
  painted.host = "\x1b[31m";
  CHECK_THROWS_AS(static_cast<void>(Handshake::from(painted.record())), FrameError);
}

TEST_CASE("list checksums differ for another name, port, order, length or job") {
  const std::vector<Endpoint> list{{"a", "1"}, {"b", "2"}};
  const std::uint64_t checksum = list_checksum(list, "job");
  CHECK(checksum == list_checksum(list, "job"));
  const std::vector<std::vector<Endpoint>> others{{{"a", "1"}, {"c", "2"}}, {{"a", "1"}, {"b", "3"}},
                                                  {{"b", "2"}, {"a", "1"}}, {{"a", "1"}},
                                                  {{"a1", ""}, {"b", "2"}}, {{"", "a1"}, {"b", "2"}}};
  for (const auto& other : others) CHECK(checksum != list_checksum(other, "job"));
  CHECK(checksum != list_checksum(list, "another job"));
}

TEST_CASE("a proof is valid for one secret, one side, one pair of nonces and one hello") {
  const Nonce one = random_nonce(), two = random_nonce();
  CHECK(one != two);
  const std::vector<std::byte> said = someone.record();
  const auto proof = proof_of("secret", "connector", one, two, said);
  CHECK(proof == proof_of("secret", "connector", one, two, said));
  CHECK(proof != proof_of("secret2", "connector", one, two, said));
  CHECK(proof != proof_of("secret", "acceptor", one, two, said));
  CHECK(proof != proof_of("secret", "connector", two, one, said));
  CHECK(proof != proof_of("secret", "connector", one, two, std::span{said}.first(said.size() - 1)));
}

TEST_CASE("a nonce has 32 bytes") {
  const Nonce nonce = random_nonce();
  CHECK(dist::net::nonce_from(nonce) == nonce);
  CHECK_THROWS_AS(dist::net::nonce_from(std::span{nonce}.first(31)), FrameError);
  CHECK_THROWS_AS(dist::net::nonce_from(std::vector<std::byte>(33)), FrameError);
}

TEST_CASE("a refusal keeps its parts, which are truncated to fit into a handshake") {
  const auto read = dist::net::refusal_from(dist::net::refusal_record({"problem", "why", "what to do", true}));
  CHECK(read.problem == "problem");
  CHECK(read.why == "why");
  CHECK(read.suggestion == "what to do");
  CHECK(read.passes);
  const std::string endless(10'000, 'x');
  const auto record = dist::net::refusal_record({endless, endless, endless});
  CHECK(record.size() <= dist::net::longest_handshake);
  CHECK(dist::net::refusal_from(record).why.size() == 1200);
  CHECK(!dist::net::refusal_from(record).passes);
}
