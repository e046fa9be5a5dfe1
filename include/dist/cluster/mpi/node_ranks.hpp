#pragma once

#include <poll.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <dist/cluster/mpi/lost_peer.hpp>
#include <dist/net/connection.hpp>

namespace dist::detail {

/// The ranks of one node, as its server knows them: each has a connection, which shows that it lives.
class NodeRanks {
 public:
  explicit NodeRanks(const std::vector<std::size_t>& ranks) {
    for (const std::size_t rank : ranks) members_.push_back({rank});
  }

  [[nodiscard]] bool here(std::size_t rank) const {
    for (const Member& member : members_)
      if (member.rank == rank) return true;
    return false;
  }
  [[nodiscard]] bool connected(std::size_t rank) { return of(rank).connection.open(); }
  void add(std::size_t rank, net::Connection connection) { of(rank).connection = std::move(connection); }

  void add_entries(std::vector<pollfd>& entries) const {
    for (const Member& member : members_)
      if (member.connection.open()) entries.push_back(member.connection.poll_entry());
  }
  void send(std::size_t rank, WorldFrame frame, std::span<const std::byte> record) {
    of(rank).connection.send(static_cast<std::uint16_t>(frame), record);
  }
  /// To every connected rank, except one.
  void send_all(WorldFrame frame, std::span<const std::byte> record,
                std::size_t except = static_cast<std::size_t>(-1)) {
    for (Member& member : members_)
      if (member.rank != except) member.connection.send(static_cast<std::uint16_t>(frame), record);
  }
  [[nodiscard]] bool sent() const {
    for (const Member& member : members_)
      if (member.connection.open() && !member.connection.sent()) return false;
    return true;
  }

  [[nodiscard]] std::size_t still_connected() const {
    return count([](const Member& member) { return member.connection.open(); });
  }
  /// Every rank left in an orderly way: it said goodbye, and so did its MPI.
  [[nodiscard]] bool all_done() const {
    return count([](const Member& member) { return member.goodbye && member.finalized; }) == members_.size();
  }
  [[nodiscard]] bool said_goodbye(std::size_t rank) { return of(rank).goodbye; }
  [[nodiscard]] bool finalized(std::size_t rank) { return of(rank).finalized; }
  void finalize(std::size_t rank) { of(rank).finalized = true; }
  /// Whether it has come to MPI_Init, and whether it has left it.
  [[nodiscard]] bool in_mpi(std::size_t rank) { return of(rank).in_mpi; }
  [[nodiscard]] bool initialised(std::size_t rank) { return of(rank).initialised; }
  void enter_mpi(std::size_t rank) { of(rank).in_mpi = true; }
  [[nodiscard]] bool all_in_mpi() const {
    return count([](const Member& member) { return member.in_mpi; }) == members_.size();
  }

  /// Sends and receives what is possible now. `leaves(rank)` is told of goodbyes, `gone(rank, why)` of connections that
  /// ended without one.
  template <class Leaves, class Gone>
  void advance(Leaves&& leaves, Gone&& gone) {
    for (Member& member : members_) {
      if (!member.connection.open()) continue;
      std::string why;
      try {
        member.connection.flush();
        if (!member.connection.receive()) why = "its process ended without a goodbye";
        while (const std::optional<net::Frame> frame = member.connection.next()) {
          if (frame->type == static_cast<std::uint16_t>(WorldFrame::initialised)) member.initialised = true;
          if (frame->type == static_cast<std::uint16_t>(WorldFrame::goodbye) && !member.goodbye) {
            member.goodbye = true;
            leaves(member.rank);
          }
        }
      } catch (const net::FrameError& error) {
        why = error.what();
      }
      if (why.empty()) continue;
      member.connection.close();
      if (!member.goodbye) gone(member.rank, why);
    }
  }

 private:
  struct Member {
    std::size_t rank = 0;
    net::Connection connection{};
    bool in_mpi = false;
    bool initialised = false;
    bool goodbye = false;
    bool finalized = false;
  };

  Member& of(std::size_t rank) {
    for (Member& member : members_)
      if (member.rank == rank) return member;
    throw InvalidArgument(concat("Rank ", rank, " is on another node"), "this server has other ranks", "");
  }
  template <class Holds>
  [[nodiscard]] std::size_t count(Holds&& holds) const {
    std::size_t number = 0;
    for (const Member& member : members_) number += holds(member) ? 1U : 0U;
    return number;
  }

  std::vector<Member> members_;
};

}  // namespace dist::detail
