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
#include <dist/net/record.hpp>

namespace dist::detail {

/// Between servers a frame may carry what all ranks contribute to a fence.
inline constexpr std::size_t longest_link_frame = std::size_t{64} << 20;

/// The connections between the servers of a world: a star around the first node's. Each link carries a heartbeat, by
/// which a host that fell silent is told from one that is busy.
class NodeLinks {
 public:
  NodeLinks(std::size_t nodes, net::Milliseconds silence) : links_(nodes), silence_(silence) {}

  [[nodiscard]] bool connected(std::size_t node) const { return links_[node].connection.open(); }
  [[nodiscard]] bool said_goodbye(std::size_t node) const { return links_[node].goodbye; }
  void add(std::size_t node, net::Connection connection) {
    links_[node].connection = std::move(connection);
    heard_from(node);
  }
  /// Counts silence from now.
  void heard_from_all() {
    for (std::size_t node = 0; node < links_.size(); ++node) heard_from(node);
  }

  void add_entries(std::vector<pollfd>& entries) const {
    for (const Link& link : links_)
      if (link.connection.open()) entries.push_back(link.connection.poll_entry());
  }

  void send(std::size_t node, WorldFrame frame, std::span<const std::byte> record) {
    links_[node].connection.send(static_cast<std::uint16_t>(frame), record);
  }
  /// To every server that this one is connected with, except one.
  void send_all(WorldFrame frame, std::span<const std::byte> record,
                std::size_t except = static_cast<std::size_t>(-1)) {
    for (std::size_t node = 0; node < links_.size(); ++node)
      if (node != except) send(node, frame, record);
  }
  /// All that was to be sent is with the system.
  [[nodiscard]] bool sent() const {
    for (const Link& link : links_)
      if (link.connection.open() && !link.connection.sent()) return false;
    return true;
  }

  /// Sends and receives what is possible now. `take(node, frame)` gets every frame but heartbeats; `broken(node, why)`
  /// is told of links that end without a goodbye.
  template <class Take, class Broken>
  void advance(Take&& take, Broken&& broken) {
    const bool beat = heartbeat_.passed();
    if (beat) heartbeat_ = net::Deadline::in(net::Milliseconds{1000});
    for (std::size_t node = 0; node < links_.size(); ++node) {
      net::Connection& connection = links_[node].connection;
      if (!connection.open()) continue;
      std::string why;
      try {
        if (beat) send(node, WorldFrame::heartbeat, {});
        connection.flush();
        if (!connection.receive()) why = "its server closed the connection";
        while (std::optional<net::Frame> frame = connection.next()) {
          heard_from(node);
          if (frame->type == static_cast<std::uint16_t>(WorldFrame::goodbye)) links_[node].goodbye = true;
          if (frame->type != static_cast<std::uint16_t>(WorldFrame::heartbeat)) take(node, *frame);
        }
        if (why.empty() && connection.failed()) why = "the connection to its server broke";
        if (why.empty() && links_[node].silent_from.passed()) why = concat("its server has been silent for ", silence_);
      } catch (const net::FrameError& error) {
        why = error.what();
      }
      if (why.empty()) continue;
      connection.close();
      if (!links_[node].goodbye) broken(node, why);
    }
  }

 private:
  struct Link {
    net::Connection connection;
    bool goodbye = false;
    net::Deadline silent_from = net::Deadline::in({});
  };

  void heard_from(std::size_t node) { links_[node].silent_from = net::Deadline::in(silence_); }

  std::vector<Link> links_;
  net::Milliseconds silence_;
  net::Deadline heartbeat_ = net::Deadline::in({});
};

/// What the nodes contribute to the fences of a job, at the first server. A fence is over when all have come.
class FenceTable {
 public:
  explicit FenceTable(std::size_t nodes) : nodes_(nodes) {}

  /// Takes a node's contribution to a fence, and gives all of them in node order once it was the last.
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
