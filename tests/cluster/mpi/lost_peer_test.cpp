#include <dist/cluster/mpi/lost_peer.hpp>

#include <doctest/doctest.h>

#include <dist/net/connection.hpp>
#include <net/pair.hpp>

using dist::LostPeer;
using dist::read_lost_peer;
using dist::detail::lost_record;
using dist::detail::WorldFrame;

namespace {

const LostPeer server{7, "host-7", "the server ended", false};

void send_frame(int socket, WorldFrame type, const std::vector<std::byte>& record, std::size_t cut = 0) {
  std::vector<std::byte> bytes;
  dist::net::append_frame(bytes, static_cast<std::uint16_t>(type), record);
  REQUIRE(send(socket, bytes.data(), bytes.size() - cut, 0) == static_cast<ssize_t>(bytes.size() - cut));
}

}  // namespace

TEST_CASE("a lifeline reports each lost process once") {
  auto [here, there] = dist_test::socket_pair();
  CHECK_FALSE(read_lost_peer(there.get(), server));
  send_frame(here.get(), WorldFrame::lost, lost_record({2, "host-2", "killed", false}));
  send_frame(here.get(), WorldFrame::heartbeat, {});
  send_frame(here.get(), WorldFrame::lost, lost_record({3, "host-3", "finished", true}));
  const auto first = read_lost_peer(there.get(), server);
  REQUIRE(first);
  CHECK(first->rank == 2);
  CHECK(first->host == "host-2");
  CHECK(first->why == "killed");
  CHECK_FALSE(first->in_order);
  const auto second = read_lost_peer(there.get(), server);
  REQUIRE(second);
  CHECK(second->rank == 3);
  CHECK(second->in_order);
  CHECK_FALSE(read_lost_peer(there.get(), server));
}

TEST_CASE("an incomplete frame is not a loss") {
  auto [here, there] = dist_test::socket_pair();
  send_frame(here.get(), WorldFrame::lost, lost_record({2, "host-2", "killed", false}), 3);
  CHECK_FALSE(read_lost_peer(there.get(), server));
}

TEST_CASE("the exit of the server, or invalid data, is the loss of the server, at each call") {
  auto [here, there] = dist_test::socket_pair();
  here.reset();
  for (int i = 0; i < 2; ++i) {
    const auto lost = read_lost_peer(there.get(), server);
    REQUIRE(lost);
    CHECK(lost->rank == 7);
    CHECK(lost->why == "the server ended");
  }
  auto [liar, reader] = dist_test::socket_pair();
  REQUIRE(send(liar.get(), "nonsense nonsense", 17, 0) == 17);
  const auto lost = read_lost_peer(reader.get(), server);
  REQUIRE(lost);
  CHECK(lost->rank == 7);
  CHECK(lost->why.find("A peer uses another protocol") == 0);
}
