#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include <dist/comm/mpi/rpc/call_transfers.hpp>
#include <dist/comm/mpi/rpc/packet.hpp>
#include <dist/core/duration.hpp>
#include <dist/core/pointers.hpp>
#include <dist/net/deadline.hpp>

/// What the engine of calls (comm/mpi/rpc/engine.hpp) tells those who have calls. It does so with its lock held.
namespace dist::mpi::detail {

/// A call that goes on, on either side.
class OpenCall : public TransferOwner, public std::enable_shared_from_this<OpenCall> {
 public:
  OpenCall(std::size_t with, net::Milliseconds longest_silence) : peer(with), silence(longest_silence) {}

  /// A packet for this call.
  virtual void take(Packet packet) = 0;
  /// Called about every millisecond.
  virtual void look(std::chrono::steady_clock::time_point now) = 0;
  /// The process at the other end is lost.
  virtual void lose(const std::string& why) = 0;

  const std::size_t peer;           ///< the process at the other end
  const net::Milliseconds silence;  ///< of that process, until it counts as lost
};

/// A server.
class Listener {
 public:
  virtual ~Listener() = default;
  virtual void accept(std::size_t peer, Packet packet) = 0;
};

/// A client's view of a server.
class ServerWatch {
 public:
  ServerWatch(std::size_t of, net::Milliseconds longest_silence) : peer(of), silence(longest_silence) {}
  virtual ~ServerWatch() = default;
  /// Whether the client takes the server for ready, so that its process must give signs of life even while there is no call.
  [[nodiscard]] virtual bool is_ready() const = 0;
  /// The server at the port of that process has stopped, or the process is gone.
  virtual void gone(std::size_t process, std::optional<std::uint16_t> port) = 0;

  const std::size_t peer;           ///< the process of the server
  const net::Milliseconds silence;  ///< of that process, until it counts as lost
};

}  // namespace dist::mpi::detail
