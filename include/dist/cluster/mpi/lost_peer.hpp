#pragma once

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <dist/comm/health/peer_health.hpp>  // LostPeer
#include <dist/net/frame.hpp>

namespace dist {

namespace detail {

/// Frames between connected processes of a hosted world and their servers.
enum class WorldFrame : std::uint16_t {
  environment = 16,   ///< server to rank: a NodeHandshake
  failed = 17,        ///< server to rank or server: the world cannot be created
  lost = 18,          ///< in all directions: a LostPeer
  initialised = 19,   ///< rank to server: MPI_Init has returned
  goodbye = 20,       ///< rank to server, server to server: an orderly exit
  present = 21,       ///< server to first server: a rank of its node has connected
  absent = 22,        ///< server to first server: a rank of its node has disconnected
  start = 23,         ///< first server to server: all have connected
  fence = 24,         ///< server to first server: the contribution of its ranks
  fence_result = 25,  ///< first server to server: all contributions
  heartbeat = 26,     ///< between servers
  waiting = 27,       ///< server to rank, first server to server: a MissingTasks
};

/// The missing tasks, as a sentence in the past tense, and the reason if known: "Worker 2 at east:2222 has not joined",
/// "no connection arrived".
struct MissingTasks {
  std::string who;
  std::string why;

  bool operator==(const MissingTasks&) const = default;
  [[nodiscard]] std::vector<std::byte> record() const {
    net::RecordWriter writer;
    writer.string(who).string(why);
    return {writer.content().begin(), writer.content().end()};
  }
  /// Throws FrameError.
  [[nodiscard]] static MissingTasks from(std::span<const std::byte> record) {
    net::RecordReader reader{record};
    MissingTasks missing;
    missing.who = reader.string();
    missing.why = reader.string();
    reader.expect_end();
    return missing;
  }
};

/// The message of a server to its ranks when all tasks have connected.
struct NodeHandshake {
  int server = 0;                      ///< process ID of the server
  std::string door;                    ///< path of the NodeSocket
  std::vector<std::string> variables;  ///< "NAME=value", to set for MPI_Init

  [[nodiscard]] std::vector<std::byte> record() const {
    net::RecordWriter writer;
    writer.number(static_cast<std::uint32_t>(server)).string(door);
    for (const std::string& variable : variables) writer.string(variable);
    return {writer.content().begin(), writer.content().end()};
  }
  /// Throws FrameError.
  [[nodiscard]] static NodeHandshake from(std::span<const std::byte> record) {
    net::RecordReader reader{record};
    NodeHandshake welcome;
    welcome.server = static_cast<int>(reader.number<std::uint32_t>());
    welcome.door = reader.string();
    while (!reader.empty()) welcome.variables.push_back(reader.string());
    return welcome;
  }
};

/// The longest frame on a lifeline, and of a failure.
inline constexpr std::size_t longest_lifeline_frame = 65'536;

[[nodiscard]] inline std::vector<std::byte> lost_record(const LostPeer& lost) {
  net::RecordWriter writer;
  writer.number(std::uint64_t{lost.rank}).string(lost.host).string(lost.why);
  writer.number(static_cast<std::uint8_t>(lost.in_order ? 1 : 0));
  return {writer.content().begin(), writer.content().end()};
}

/// Throws FrameError.
[[nodiscard]] inline LostPeer lost_from(std::span<const std::byte> record) {
  net::RecordReader reader{record};
  LostPeer lost;
  lost.rank = static_cast<std::size_t>(reader.number<std::uint64_t>());
  lost.host = reader.string();
  lost.why = reader.string();
  lost.in_order = reader.number<std::uint8_t>() != 0;
  reader.expect_end();
  return lost;
}

}  // namespace detail

/// Reads a lifeline (HostedWorld::lifeline) without waiting. Returns the next reported loss; `in_order` is true after
/// an orderly exit. If the server itself has exited, returns `server` at each call. Costs one system call if nothing
/// has arrived.
[[nodiscard]] inline std::optional<LostPeer> read_lost_peer(int lifeline, LostPeer server) {
  std::array<std::byte, 16384> bytes;
  constexpr std::size_t longest = bytes.size() - net::frame_header_size;
  for (;;) {
    ssize_t size = 0;
    do size = recv(lifeline, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_PEEK);
    while (size < 0 && errno == EINTR);
    if (size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return std::nullopt;
    if (size <= 0) return server;
    try {
      std::size_t used = 0;
      const std::span<const std::byte> come = std::span{bytes}.first(static_cast<std::size_t>(size));
      const std::optional<net::Frame> frame = net::parse_frame(come, longest, used);
      if (!frame) return std::nullopt;
      if (recv(lifeline, bytes.data(), used, MSG_DONTWAIT) != static_cast<ssize_t>(used)) return server;
      if (frame->type == static_cast<std::uint16_t>(detail::WorldFrame::lost)) return detail::lost_from(frame->payload);
    } catch (const net::FrameError& error) {
      server.why = error.what();
      return server;
    }
  }
}

}  // namespace dist
