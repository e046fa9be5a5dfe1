#include <dist/comm/mpi/rpc/packet.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

namespace {

using dist::mpi::detail::Packet;
using dist::mpi::detail::PacketKind;
using dist::net::FrameError;
namespace rpc = dist::rpc;

rpc::Piece bytes_of(std::string_view text) { return std::as_bytes(std::span{text}); }

std::vector<std::byte> request() {
  const rpc::Piece pieces[] = {bytes_of("abc"), {}, bytes_of("de")};
  return Packet{.kind = PacketKind::request,
                .call = 7,
                .port = 1234,
                .method = "pull",
                .head = rpc::RequestHead{.size = 5, .number = 9}.frame()}
      .bytes(pieces);
}

}  // namespace

TEST_CASE("a packet arrives as it was sent, its content where it was received") {
  const Packet packet = Packet::from(request());
  CHECK(packet.kind == PacketKind::request);
  CHECK(packet.call == 7);
  CHECK(packet.port == 1234);
  CHECK_FALSE(packet.of_reply);
  CHECK(packet.method == "pull");
  CHECK(packet.message_head<rpc::RequestHead>().size == 5);
  CHECK(packet.message_head<rpc::RequestHead>().number == 9);
  CHECK(std::ranges::equal(packet.content, bytes_of("abcde")));
  CHECK(packet.content.data() >= packet.memory.data());
  CHECK(packet.content.data() + packet.content.size() == packet.memory.data() + packet.memory.size());
  const Packet ready =
      Packet::from(Packet{.kind = PacketKind::ready, .call = 1, .of_reply = true, .tag = 20, .count = 4}.bytes());
  CHECK(ready.of_reply);
  CHECK(ready.tag == 20);
  CHECK(ready.count == 4);
  CHECK(ready.content.empty());
}

TEST_CASE("bytes that are no packet, and heads that are none, are refused whatever they are") {
  const std::vector<std::byte> whole = request();
  for (std::size_t size = 0; size < whole.size() - 5; ++size)
    CHECK_THROWS_AS(Packet::from({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)}), FrameError);
  std::vector<std::byte> other = whole;
  other[0] ^= std::byte{1};
  CHECK_THROWS_AS(Packet::from(other), FrameError);
  for (const unsigned kind : {0U, 10U, 255U}) {
    other = whole;
    other[4] = static_cast<std::byte>(kind);
    CHECK_THROWS_AS(Packet::from(other), FrameError);
  }
  // Any other byte is one of a packet, or refused; a head has a checksum.
  for (std::size_t at = 0; at < whole.size() - 5; ++at) {
    other = whole;
    other[at] ^= std::byte{0x55};
    try {
      const Packet packet = Packet::from(other);
      const auto head = packet.message_head<rpc::RequestHead>();
      CHECK(head.size == 5);
    } catch (const FrameError&) {
    }
  }
  CHECK_THROWS_AS(static_cast<void>(Packet::from(whole).message_head<rpc::ReplyHead>()), FrameError);
  CHECK_THROWS_AS(static_cast<void>(Packet{}.message_head<rpc::RequestHead>()), FrameError);
}
