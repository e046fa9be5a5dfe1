// ranks: 2
#include <dist/comm/mpi/rpc/call_transfers.hpp>

#include <doctest/doctest.h>

#include <sched.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <dist/comm/mpi/comm_ref.hpp>

namespace {

using dist::mpi::detail::CallTransfers;
using dist::mpi::detail::Packet;
using dist::mpi::detail::PacketKind;
using dist::mpi::detail::part_size;
using dist::mpi::detail::parts_under_way;
using dist::mpi::detail::Postbox;
using dist::mpi::detail::ReceivedPart;
using dist::mpi::detail::TransferKey;
using dist::mpi::detail::TransferOwner;
namespace rpc = dist::rpc;

struct Owner : TransferOwner {
  void sent() override { is_sent = true; }
  void received(std::vector<ReceivedPart> its) override { parts = std::move(its); }
  void broken(std::string_view why) override { is_broken = why; }
  void given_up() override { is_given_up = true; }

  bool is_sent = false;
  std::optional<std::vector<ReceivedPart>> parts;
  std::string is_broken;
  bool is_given_up = false;
};

/// The transfers of this rank, with the packets that they need.
class Rank {
 public:
  Rank() {
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    rank = dist::mpi::detail::rank_in(comm);
    postbox.emplace(comm, 1);
    transfers.emplace(comm, [this](std::size_t peer, const Packet& packet) { postbox->send(peer, packet.bytes()); });
  }
  Rank(const Rank&) = delete;
  Rank& operator=(const Rank&) = delete;
  ~Rank() {
    MPI_Request all = MPI_REQUEST_NULL;
    MPI_Ibarrier(comm, &all);
    advance_until([&] {
      int done = 0;
      MPI_Test(&all, &done, MPI_STATUS_IGNORE);
      return done != 0 && postbox->is_empty();
    });
    transfers.reset();
    postbox.reset();
    MPI_Comm_free(&comm);
  }
  template <class Done>
  void advance_until(Done&& done) {
    while (!done()) {
      postbox->advance(
          [&](std::size_t peer, std::vector<std::byte> bytes) {
            const Packet packet = Packet::from(std::move(bytes));
            const TransferKey key{peer, packet.call, packet.of_reply};
            if (packet.kind == PacketKind::ready)
              transfers->take_ready(key, packet.tag, packet.count);
            else
              transfers->take_abandon(key, packet.count);
          },
          [](std::size_t) {});
      if (!transfers->advance([&](std::size_t peer) { CHECK(peer < 2); })) sched_yield();
    }
  }

  MPI_Comm comm = MPI_COMM_NULL;
  std::size_t rank = 0;
  std::optional<Postbox> postbox;
  std::optional<CallTransfers> transfers;
};

std::byte byte_at(std::uint64_t i) { return static_cast<std::byte>(i % 251); }

std::uint64_t size_of(const std::vector<ReceivedPart>& parts) {
  std::uint64_t size = 0;
  for (const ReceivedPart& part : parts) size += part.size;
  return size;
}
bool holds(const std::vector<ReceivedPart>& parts) {
  std::uint64_t at = 0;
  for (const ReceivedPart& part : parts)
    for (std::size_t i = 0; i < part.size; ++i)
      if (part.memory[i] != byte_at(at++)) return false;
  return true;
}

}  // namespace

TEST_CASE("bytes of many pieces arrive whole, several transfers at a time, in both directions and to oneself") {
  Rank here;
  const std::uint64_t sizes[] = {1, 1000, part_size - 1, part_size, part_size + 1, 3 * part_size + 17};
  std::vector<std::byte> memory(4 * part_size);
  for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = byte_at(i);
  std::vector<std::shared_ptr<Owner>> senders, receivers;
  for (std::size_t peer = 0; peer < 2; ++peer)
    for (std::uint64_t number = 0; number < std::size(sizes); ++number) {
      // Pieces that begin and end anywhere, among them empty ones.
      std::vector<rpc::Piece> pieces;
      for (std::uint64_t at = 0; at < sizes[number];) {
        const std::uint64_t step = std::min<std::uint64_t>(sizes[number] - at, (at * 7919 + 1) % 700'001);
        pieces.push_back(rpc::Piece{memory}.subspan(at, step));
        at += step;
      }
      here.transfers->send({peer, number, false}, pieces, senders.emplace_back(std::make_shared<Owner>()));
      here.transfers->receive({peer, number, false}, sizes[number], receivers.emplace_back(std::make_shared<Owner>()));
    }
  here.advance_until([&] { return !here.transfers->are_under_way(); });
  for (const auto& sender : senders) CHECK(sender->is_sent);
  for (std::size_t i = 0; i < receivers.size(); ++i) {
    REQUIRE(receivers[i]->parts);
    CHECK(size_of(*receivers[i]->parts) == sizes[i % std::size(sizes)]);
    CHECK(holds(*receivers[i]->parts));
  }
}

TEST_CASE("nothing is sent before somebody asks, and a sender that gives up has its memory back at once") {
  Rank here;
  const std::vector<std::byte> memory(6 * part_size);
  const rpc::Piece piece = memory;
  const auto owner = std::make_shared<Owner>();
  if (here.rank == 0) {
    here.transfers->send({1, 1, true}, {&piece, 1}, owner);
    for (int i = 0; i < 10; ++i) here.transfers->advance([](std::size_t) {});
    CHECK_FALSE(here.transfers->lends_to(1));
    here.transfers->cease({1, 1, true});
    here.transfers->cease({1, 1, true});
    here.transfers->cease({1, 99, true});
    here.advance_until([&] { return owner->is_sent; });
    CHECK_FALSE(here.transfers->are_under_way());
  }
}

TEST_CASE("a transfer that ends in the middle leaves neither memory nor messages behind") {
  Rank here;
  const std::vector<std::byte> memory(6 * part_size);
  const rpc::Piece piece = memory;
  const auto owner = std::make_shared<Owner>();
  const auto second = std::make_shared<Owner>();
  if (here.rank == 0) {
    here.transfers->send({1, 1, false}, {&piece, 1}, owner);
    here.advance_until([&] { return here.transfers->lends_to(1); });
    here.transfers->cease({1, 1, false});
    here.advance_until([&] { return owner->is_sent; });
    here.transfers->send({1, 2, false}, {&piece, 1}, second);
    here.advance_until([&] { return second->is_sent; });
  } else {
    here.transfers->receive({0, 1, false}, memory.size(), owner);
    here.advance_until([&] { return owner->is_given_up; });
    CHECK_FALSE(owner->parts);
    CHECK_FALSE(here.transfers->are_under_way());
    // A receiver that has given up itself hears no more of it.
    here.transfers->receive({0, 2, false}, memory.size(), second);
    here.advance_until([&] { return second->parts.has_value(); });
    CHECK(size_of(*second->parts) == memory.size());
  }
}

TEST_CASE("a receiver that withdraws asks no further") {
  Rank here;
  const std::vector<std::byte> memory(6 * part_size);
  const rpc::Piece piece = memory;
  const auto owner = std::make_shared<Owner>();
  MPI_Request told = MPI_REQUEST_NULL;
  const auto is_told = [&] {
    int done = 0;
    MPI_Test(&told, &done, MPI_STATUS_IGNORE);
    return done != 0;
  };
  if (here.rank == 0) {
    here.transfers->send({1, 1, false}, {&piece, 1}, owner);
    MPI_Irecv(nullptr, 0, MPI_BYTE, 1, 9, here.comm, &told);
    here.advance_until(is_told);  // now the caller says that it has cancelled
    CHECK_FALSE(owner->is_sent);
    here.transfers->cease({1, 1, false});
    here.advance_until([&] { return owner->is_sent; });
  } else {
    here.transfers->receive({0, 1, false}, memory.size(), owner);
    here.transfers->withdraw({0, 1, false});
    MPI_Isend(nullptr, 0, MPI_BYTE, 0, 9, here.comm, &told);
    here.advance_until([&] { return is_told() && !here.transfers->are_under_way(); });
    CHECK_FALSE(owner->parts);
    CHECK_FALSE(owner->is_given_up);
  }
}

TEST_CASE("parts of another size than announced are refused") {
  Rank here;
  const std::vector<std::byte> memory(1000);
  const auto owner = std::make_shared<Owner>();
  if (here.rank == 0) {
    const rpc::Piece piece{memory.data(), 999};
    here.transfers->send({1, 1, false}, {&piece, 1}, owner);
    here.advance_until([&] { return owner->is_sent; });
  } else {
    here.transfers->receive({0, 1, false}, 1000, owner);
    here.advance_until([&] { return !owner->is_broken.empty(); });
    CHECK(owner->is_broken == "a part of a message has another size than it is to have");
    CHECK_FALSE(owner->parts);
  }
}

TEST_CASE("what comes of transfers that nobody knows is ignored") {
  Rank here;
  here.transfers->take_ready({1, 5, false}, 20, 4);
  here.transfers->take_abandon({1, 5, false}, 4);
  here.transfers->withdraw({1, 5, false});
  const std::byte byte{};
  const rpc::Piece piece{&byte, 1};
  const auto owner = std::make_shared<Owner>();
  here.transfers->send({1, 6, false}, {&piece, 1}, owner);
  here.transfers->take_ready({1, 6, false}, 3, 4);  // no tag of a transfer
  CHECK_FALSE(here.transfers->lends_to(1));
  here.transfers->drop(1);
  CHECK(owner->is_sent);
}
