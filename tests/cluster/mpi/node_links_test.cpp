#include <dist/cluster/mpi/node_links.hpp>

#include <doctest/doctest.h>

#include <thread>

#include <net/pair.hpp>

using namespace std::chrono_literals;
using dist::detail::FenceTable;
using dist::detail::NodeLinks;
using dist::detail::WorldFrame;
using dist::net::Connection;
using dist::net::Frame;

namespace {

std::vector<std::byte> bytes_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span{text});
  return {bytes.begin(), bytes.end()};
}

/// The links of two servers; 0 is the first.
struct Two {
  explicit Two(dist::net::Milliseconds silence) : first(2, silence), second(2, silence) {
    auto [here, there] = dist_test::socket_pair();
    first.add(1, Connection{std::move(here), dist::detail::longest_link_frame});
    second.add(0, Connection{std::move(there), dist::detail::longest_link_frame});
  }
  NodeLinks first, second;
};

struct Heard {
  std::vector<Frame> frames;
  std::string broken;
  void from(NodeLinks& links) {
    links.advance([&](std::size_t, const Frame& frame) { frames.push_back(frame); },
                  [&](std::size_t, const std::string& why) { broken = why; });
  }
};

}  // namespace

TEST_CASE("large frames travel in both directions at once") {
  Two two{10s};
  const std::vector<std::byte> large(5'000'000, std::byte{42});
  two.first.send(1, WorldFrame::fence_result, large);
  two.second.send_all(WorldFrame::fence, large);
  CHECK_FALSE(two.first.sent());
  Heard at_first, at_second;
  for (int i = 0; i < 10'000 && (at_first.frames.empty() || at_second.frames.empty()); ++i) {
    at_first.from(two.first);
    at_second.from(two.second);
  }
  REQUIRE(at_first.frames.size() == 1);
  REQUIRE(at_second.frames.size() == 1);
  CHECK(at_first.frames[0].payload == large);
  CHECK(at_second.frames[0].type == static_cast<std::uint16_t>(WorldFrame::fence_result));
}

TEST_CASE("a link that ends is broken, unless there was a goodbye") {
  Two two{10s};
  two.second = NodeLinks{2, 10s};
  Heard heard;
  heard.from(two.first);
  CHECK(heard.broken != "");
  CHECK_FALSE(two.first.connected(1));

  Two others{10s};
  others.second.send_all(WorldFrame::goodbye, {});
  others.second = NodeLinks{2, 10s};
  Heard orderly;
  orderly.from(others.first);
  orderly.from(others.first);
  CHECK_FALSE(others.first.connected(1));
  CHECK(orderly.broken == "");
  CHECK(others.first.said_goodbye(1));
}

TEST_CASE("silence breaks a link, and heartbeats keep it") {
  Two two{100ms};
  std::this_thread::sleep_for(120ms);
  Heard heard, other;
  other.from(two.second);  // sends its heartbeat, too late for itself, in time for the first
  heard.from(two.first);
  CHECK(other.broken == "its server has been silent for 0.1 s");
  CHECK(heard.broken != "its server has been silent for 0.1 s");
  CHECK(heard.frames.empty());
}

TEST_CASE("a fence completes when all nodes have contributed, in node order") {
  FenceTable book{3};
  CHECK_FALSE(book.add(1, 2, bytes_of("c")));
  CHECK_FALSE(book.add(1, 0, bytes_of("a")));
  CHECK_FALSE(book.add(2, 0, bytes_of("next")));
  const auto all = book.add(1, 1, bytes_of(""));
  REQUIRE(all);
  CHECK(*all == bytes_of("ac"));
  CHECK_FALSE(book.add(2, 1, bytes_of("")));
  CHECK(book.add(2, 2, bytes_of("")) == bytes_of("next"));
  CHECK(FenceTable{1}.add(1, 0, {}) == std::vector<std::byte>{});
}
