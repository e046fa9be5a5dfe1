#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dist/comm/rpc.hpp>
#include <dist/comm/rpc_session.hpp>
#include <dist/net/frame.hpp>
#include <dist/net/record.hpp>

/// What the processes of MPI tell each other about calls. Bytes that are too many for a packet travel as a transfer
/// (comm/mpi/rpc/call_transfers.hpp).
namespace dist::mpi::detail {

enum class PacketKind : std::uint8_t {
  request = 1,  ///< client to server: the head of a call, and its bytes if they are few
  reply,        ///< server to client: the same of a reply
  absent,       ///< to client: no server listens at the port
  cancel,       ///< client to server: nobody waits for the reply any more
  ready,        ///< receiver to sender of a transfer: `count` more parts are expected, under this tag
  abandon,      ///< sender to receiver of a transfer: `count` parts were sent, and no more will be
  gone,         ///< to client: the server at the port has stopped
  ping,         ///< asks for a sign of life
  pong,         ///< gives one
};

/// The bytes of a message that travel in its packet, at most.
inline constexpr std::size_t longest_content = 16384;
inline constexpr std::size_t longest_method = 1024;
inline constexpr std::size_t longest_packet = longest_content + longest_method + rpc::longest_head + 64;

/// A packet. Kinds use the members that they need; the others are zero.
struct Packet {
  PacketKind kind = PacketKind::ping;
  std::uint64_t call = 0;  ///< a number of the client's process, one for each attempt of a call
  std::uint16_t port = 0;
  bool of_reply = false;  ///< the transfer is that of the reply
  std::uint32_t tag = 0;
  std::uint32_t count = 0;
  std::string method = {};
  std::vector<std::byte> head = {};  ///< the frame of an rpc::RequestHead or rpc::ReplyHead

  std::vector<std::byte> memory = {};  ///< in which the packet was received; `content` lies in it
  rpc::Piece content = {};

  [[nodiscard]] std::vector<std::byte> bytes(rpc::GatherList sent = {}) const {
    net::RecordWriter writer;
    writer.number(mark).number(static_cast<std::uint8_t>(kind)).number(static_cast<std::uint8_t>(of_reply ? 1 : 0));
    writer.number(port).number(call).number(tag).number(count).string(method).bytes(head);
    std::vector<std::byte> all(writer.content().begin(), writer.content().end());
    for (const rpc::Piece piece : sent) all.insert(all.end(), piece.begin(), piece.end());
    return all;
  }
  /// Throws FrameError.
  [[nodiscard]] static Packet from(std::vector<std::byte> received) {
    Packet packet;
    packet.memory = std::move(received);
    net::RecordReader reader{packet.memory};
    if (reader.number<std::uint32_t>() != mark)
      throw net::FrameError("A process of MPI sends what is no packet of a call", "its first bytes are others", "");
    const auto kind = reader.number<std::uint8_t>();
    if (kind < static_cast<std::uint8_t>(PacketKind::request) || kind > static_cast<std::uint8_t>(PacketKind::pong))
      throw net::FrameError("A packet of a call is of no known kind", text("number ", kind), "");
    packet.kind = static_cast<PacketKind>(kind);
    packet.of_reply = reader.number<std::uint8_t>() != 0;
    packet.port = reader.number<std::uint16_t>();
    packet.call = reader.number<std::uint64_t>();
    packet.tag = reader.number<std::uint32_t>();
    packet.count = reader.number<std::uint32_t>();
    packet.method = reader.string(longest_method);
    const rpc::Piece head = reader.bytes();
    packet.head.assign(head.begin(), head.end());
    const std::size_t used = static_cast<std::size_t>(head.data() - packet.memory.data()) + head.size();
    packet.content = rpc::Piece{packet.memory}.subspan(used);
    return packet;
  }

  /// The head of the message. Throws FrameError.
  template <class Head>
  [[nodiscard]] Head message_head() const {
    std::size_t used = 0;
    const std::optional<net::Frame> frame = net::parse_frame(head, rpc::longest_head, used);
    if (!frame || used != head.size())
      throw net::FrameError("A message of a call does not begin with a head", text(head.size(), " bytes"), "");
    return Head::from(*frame);
  }

 private:
  static constexpr std::uint32_t mark = 0x43504d44;  // "DMPC"
};

}  // namespace dist::mpi::detail
