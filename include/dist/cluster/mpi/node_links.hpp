#pragma once

#include <poll.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <dist/cluster/mpi/hosted_options.hpp>
#include <dist/cluster/mpi/lost_peer.hpp>
#include <dist/net/connection.hpp>
#include <dist/net/deadline.hpp>
#include <dist/net/frame.hpp>

namespace dist::detail {

/// A server's connections to other processes, each with a number.
class NodePeers {
 public:
  [[nodiscard]] bool connected(std::size_t number) { return of(number).connection.open(); }
  [[nodiscard]] bool said_goodbye(std::size_t number) { return of(number).goodbye; }

  void add_entries(std::vector<pollfd>& entries) const {
    for (const Peer& peer : peers_)
      if (peer.connection.open()) entries.push_back(peer.connection.poll_entry());
  }
  void send(std::size_t number, WorldFrame frame, std::span<const std::byte> record) {
    of(number).connection.send(static_cast<std::uint16_t>(frame), record);
  }
  /// Sends to all connected processes except one.
  void send_all(WorldFrame frame, std::span<const std::byte> record,
                std::size_t except = static_cast<std::size_t>(-1)) {
    for (Peer& peer : peers_)
      if (peer.number != except) peer.connection.send(static_cast<std::uint16_t>(frame), record);
  }
  /// True if the system has accepted all data.
  [[nodiscard]] bool sent() const {
    return count([](const Peer& peer) { return peer.connection.open() && !peer.connection.sent(); }) == 0;
  }

 protected:
  struct Peer {
    std::size_t number = 0;
    net::Connection connection{};
    bool goodbye = false;
    // Only for ranks:
    bool in_mpi = false;
    bool initialised = false;
    bool finalized = false;
    // Only for other servers:
    net::Deadline silent_from = net::Deadline::in({});
  };

  Peer& of(std::size_t number) {
    for (Peer& peer : peers_)
      if (peer.number == number) return peer;
    throw InvalidArgument(concat("Rank ", number, " is on another node"), "this server has other ranks",
                          "Use a rank of this node");
  }
  template <class Holds>
  [[nodiscard]] std::size_t count(Holds&& holds) const {
    std::size_t number = 0;
    for (const Peer& peer : peers_) number += holds(peer) ? 1U : 0U;
    return number;
  }
  /// Sends and receives without waiting, and passes frames to `take(frame)`. Returns why the connection has ended:
  /// `end` if the process closed it; empty while it is open.
  template <class Take>
  [[nodiscard]] static std::string exchange(Peer& peer, const char* end, Take&& take) {
    try {
      peer.connection.flush();
      const bool alive = peer.connection.receive();
      while (std::optional<net::Frame> frame = peer.connection.next()) take(*frame);
      return alive ? "" : end;
    } catch (const net::FrameError& error) {
      return error.what();
    }
  }
  /// Closes the connection if `why` is not empty; calls `lost(number, why)` unless there was a goodbye.
  template <class Lost>
  static void close(Peer& peer, const std::string& why, Lost&& lost) {
    if (why.empty()) return;
    peer.connection.close();
    if (!peer.goodbye) lost(peer.number, why);
  }

  std::vector<Peer> peers_;
};

/// Connections to the ranks of a node; each stays open while its rank lives.
class NodeRanks : public NodePeers {
 public:
  explicit NodeRanks(const std::vector<std::size_t>& ranks) {
    for (const std::size_t rank : ranks) peers_.push_back({rank});
  }

  void add(std::size_t rank, net::Connection connection) { of(rank).connection = std::move(connection); }

  [[nodiscard]] std::size_t still_connected() const {
    return count([](const Peer& peer) { return peer.connection.open(); });
  }
  /// True if every rank said goodbye and finalised MPI.
  [[nodiscard]] bool all_done() const {
    return count([](const Peer& peer) { return peer.goodbye && peer.finalized; }) == peers_.size();
  }
  [[nodiscard]] bool finalized(std::size_t rank) { return of(rank).finalized; }
  void finalize(std::size_t rank) { of(rank).finalized = true; }
  /// True if the rank has entered MPI_Init, and (`initialised`) returned from it.
  [[nodiscard]] bool in_mpi(std::size_t rank) { return of(rank).in_mpi; }
  [[nodiscard]] bool initialised(std::size_t rank) { return of(rank).initialised; }
  void enter_mpi(std::size_t rank) { of(rank).in_mpi = true; }
  [[nodiscard]] bool all_in_mpi() const {
    return count([](const Peer& peer) { return peer.in_mpi; }) == peers_.size();
  }

  /// Sends and receives without waiting. Calls `leaves(rank)` for goodbyes, and `gone(rank, why)` for connections that
  /// end without one.
  template <class Leaves, class Gone>
  void advance(Leaves&& leaves, Gone&& gone) {
    for (Peer& peer : peers_) {
      if (!peer.connection.open()) continue;
      const auto take = [&](const net::Frame& frame) {
        if (frame.type == static_cast<std::uint16_t>(WorldFrame::initialised)) peer.initialised = true;
        if (frame.type != static_cast<std::uint16_t>(WorldFrame::goodbye) || peer.goodbye) return;
        peer.goodbye = true;
        leaves(peer.number);
      };
      close(peer, exchange(peer, "its process exited unexpectedly", take), gone);
    }
  }
};

/// The longest frame between servers, which may carry the contributions of all ranks to a fence.
inline constexpr std::size_t longest_link_frame = std::size_t{64} << 20;

/// The connections between a world's servers: a star around the first node. Heartbeats distinguish lost hosts from busy
/// ones.
class NodeLinks : public NodePeers {
 public:
  NodeLinks(std::size_t nodes, net::Milliseconds silence) : silence_(silence) {
    for (std::size_t node = 0; node < nodes; ++node) peers_.push_back({node});
  }

  void add(std::size_t node, net::Connection connection) {
    of(node).connection = std::move(connection);
    heard_from(of(node));
  }
  /// Restarts the timeout of all links.
  void heard_from_all() {
    for (Peer& peer : peers_) heard_from(peer);
  }

  /// Sends and receives without waiting. Calls `take(node, frame)` for all frames but heartbeats, and `broken(node,
  /// why)` for links that end without a goodbye.
  template <class Take, class Broken>
  void advance(Take&& take, Broken&& broken) {
    const bool beat = heartbeat_.passed();
    if (beat) heartbeat_ = net::Deadline::in(net::Milliseconds{1000});
    for (Peer& peer : peers_) {
      if (!peer.connection.open()) continue;
      if (beat) send(peer.number, WorldFrame::heartbeat, {});
      std::string why = exchange(peer, "its server closed the connection", [&](const net::Frame& frame) {
        heard_from(peer);
        if (frame.type == static_cast<std::uint16_t>(WorldFrame::goodbye)) peer.goodbye = true;
        if (frame.type != static_cast<std::uint16_t>(WorldFrame::heartbeat)) take(peer.number, frame);
      });
      if (why.empty() && peer.connection.failed()) why = "the connection to its server is broken";
      if (why.empty() && peer.silent_from.passed()) why = concat("its server has been silent for ", silence_);
      close(peer, why, broken);
    }
  }

 private:
  void heard_from(Peer& peer) const { peer.silent_from = net::Deadline::in(silence_); }

  net::Milliseconds silence_;
  net::Deadline heartbeat_ = net::Deadline::in({});
};

/// The nodes' contributions to fences, at the first server. A fence completes when all have arrived.
class FenceTable {
 public:
  explicit FenceTable(std::size_t nodes) : nodes_(nodes) {}

  /// Adds a contribution. After the last one, returns all in node order.
  [[nodiscard]] std::optional<std::vector<std::byte>> add(std::uint64_t fence, std::size_t node,
                                                          std::span<const std::byte> contribution) {
    Open& open = open_[fence];
    open.contributions.resize(nodes_);
    if (!open.contributions[node]) ++open.come;
    open.contributions[node].emplace(contribution.begin(), contribution.end());
    if (open.come < nodes_) return std::nullopt;
    std::vector<std::byte> all;
    for (const auto& part : open.contributions) all.insert(all.end(), part->begin(), part->end());
    open_.erase(fence);
    return all;
  }

 private:
  struct Open {
    std::vector<std::optional<std::vector<std::byte>>> contributions;
    std::size_t come = 0;
  };

  std::size_t nodes_;
  std::map<std::uint64_t, Open> open_;
};

}  // namespace dist::detail
