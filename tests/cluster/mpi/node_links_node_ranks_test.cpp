#include <dist/cluster/mpi/node_links.hpp>

#include <doctest/doctest.h>

#include <net/pair.hpp>

using dist::detail::NodeRanks;
using dist::detail::WorldFrame;
using dist::io::Descriptor;
using dist::net::Connection;

namespace {

/// Ranks 1 and 3 of a job, and their ends of the connections.
struct Node {
  Node() {
    for (const std::size_t rank : {1U, 3U}) {
      auto [server, own] = dist_test::socket_pair();
      ranks.add(rank, Connection{std::move(server), 1000});
      ends.emplace_back(std::move(own), 1000);
    }
  }
  void advance() {
    ranks.advance([&](std::size_t rank) { left.push_back(rank); },
                  [&](std::size_t rank, const std::string& why) {
                    gone.push_back(rank);
                    reason = why;
                  });
  }
  void say(std::size_t index, WorldFrame frame) { ends[index].send(static_cast<std::uint16_t>(frame), {}); }

  NodeRanks ranks{{1, 3}};
  std::vector<Connection> ends;
  std::vector<std::size_t> left, gone;
  std::string reason;
};

}  // namespace

TEST_CASE("ranks connect, start, say goodbye and finalize") {
  Node node;
  CHECK(node.ranks.still_connected() == 2);
  CHECK_FALSE(node.ranks.initialised(1));
  node.say(0, WorldFrame::initialised);
  node.advance();
  CHECK(node.ranks.initialised(1));
  CHECK_FALSE(node.ranks.initialised(3));
  CHECK_FALSE(node.ranks.in_mpi(3));
  node.ranks.enter_mpi(3);
  CHECK(node.ranks.in_mpi(3));
  CHECK_FALSE(node.ranks.all_in_mpi());
  node.ranks.enter_mpi(1);
  CHECK(node.ranks.all_in_mpi());
  node.say(1, WorldFrame::initialised);
  for (const std::size_t index : {0U, 1U}) {
    node.say(index, WorldFrame::goodbye);
    node.say(index, WorldFrame::goodbye);  // reported once
    node.ends[index].close();
  }
  node.advance();
  node.advance();  // the connection closes after the last frames
  CHECK(node.ranks.initialised(3));
  CHECK(node.left == std::vector<std::size_t>{1, 3});
  CHECK(node.gone.empty());
  CHECK(node.ranks.still_connected() == 0);
  CHECK_FALSE(node.ranks.all_done());
  for (const std::size_t rank : {1U, 3U}) node.ranks.finalize(rank);
  CHECK(node.ranks.all_done());
}

TEST_CASE("a rank is lost if it disconnects without a goodbye or sends invalid data") {
  Node node;
  node.ends[1].close();
  node.advance();
  CHECK(node.gone == std::vector<std::size_t>{3});
  CHECK(node.reason == "its process exited unexpectedly");
  REQUIRE(send(node.ends[0].descriptor(), "nonsense nonsense", 17, 0) == 17);
  node.advance();
  CHECK(node.gone == std::vector<std::size_t>{3, 1});
  CHECK(node.reason.find("A peer uses another protocol") == 0);
}

TEST_CASE("send_all reaches all ranks except one") {
  Node node;
  node.ranks.send_all(WorldFrame::lost, {}, 3);
  CHECK(node.ranks.sent());
  CHECK(node.ends[0].receive());
  CHECK(node.ends[0].next());
  CHECK(node.ends[1].receive());
  CHECK_FALSE(node.ends[1].next());
}

TEST_CASE("a rank of another node is refused") {
  Node node;
  CHECK_THROWS_AS(node.ranks.send(2, WorldFrame::lost, {}), dist::InvalidArgument);
}
