#include <dist/comm/neighbor_message.hpp>

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include <dist/core/error.hpp>

#include <doctest/doctest.h>
#include <support/what_throws.hpp>

namespace {

using dist::ReceiveFrom;
using dist::SendTo;

struct Graph {
  std::vector<SendTo> sends;
  std::vector<ReceiveFrom> receives;

  void send(std::size_t from, std::size_t to, std::span<const double> values) {
    sends.push_back(dist::detail::with_ends(SendTo{to, values}, from));
  }
  void receive(std::size_t from, std::size_t to, std::span<double> values) {
    receives.push_back(dist::detail::with_ends(ReceiveFrom{from, values}, to));
  }
  [[nodiscard]] dist::detail::NeighborMismatch compare() {
    dist::detail::sort_messages(sends);
    dist::detail::sort_messages(receives);
    const auto mismatch = dist::detail::first_mismatch(sends, receives);
    // The sum over all parts of the graph is independent of the division.
    CHECK((dist::detail::balance_of(sends, {}) + dist::detail::balance_of({}, receives) != 0) ==
          (mismatch.is_there != 0));
    return mismatch;
  }
};

std::vector<double> memory(100);
std::span<double> of(std::size_t count) { return std::span{memory}.first(count); }

}  // namespace

TEST_CASE("a message views a contiguous range with its number, size and type of elements") {
  std::vector<float> vector(3);
  const std::array<double, 2> array{};
  int numbers[4]{};
  CHECK(SendTo{1, vector}.bytes() == 12);
  CHECK(SendTo{1, array}.bytes() == 16);
  CHECK(ReceiveFrom{2, numbers}.elements == 4);
  CHECK(ReceiveFrom{2, numbers}.peer == 2);
  CHECK(ReceiveFrom{2, std::span{numbers}.first(2)}.data == reinterpret_cast<std::byte*>(numbers));
  CHECK(dist::detail::fits_into(SendTo{0, vector}, ReceiveFrom{1, std::span{vector}}));
  std::vector<int> others(3);
  CHECK_FALSE(dist::detail::fits_into(SendTo{0, vector}, ReceiveFrom{1, others}));
}

TEST_CASE("messages of a graph match in any order of members") {
  Graph graph;
  graph.receive(1, 0, of(4));
  graph.send(0, 1, of(3));
  graph.send(1, 0, of(4));
  graph.send(0, 1, of(5));
  graph.send(2, 2, of(7));
  graph.receive(2, 2, of(7));
  graph.receive(0, 1, of(3));
  graph.receive(0, 1, of(5));
  CHECK(graph.compare().is_there == 0);
}

TEST_CASE("the first mismatch is reported with both ends") {
  Graph graph;
  graph.send(0, 1, of(3));
  graph.receive(0, 1, of(3));
  SUBCASE("different number of elements in the second message") {
    graph.send(0, 1, of(6));
    graph.receive(0, 1, of(5));
    const auto mismatch = graph.compare();
    CHECK(mismatch.number == 1);
    const std::string text = support::what_throws<dist::ShapeMismatch>([&] { mismatch.raise(); });
    CHECK(text.find("message 1 from replica 0 to replica 1 has 6 elements of 8 bytes, but the receiver expects 5 "
                    "elements of 8 bytes") != std::string::npos);
  }
  SUBCASE("the same elements in another order") {
    graph.send(0, 2, of(1));
    graph.send(0, 2, of(2));
    graph.receive(0, 2, of(2));
    graph.receive(0, 2, of(1));
    CHECK(graph.compare().to == 2);
  }
  SUBCASE("a missing receive, before a missing send") {
    graph.send(2, 0, of(1));
    graph.receive(2, 1, of(1));
    const std::string text = support::what_throws<dist::CollectiveMismatch>([&] { graph.compare().raise(); });
    CHECK(text.find("replica 2 sends message 0 from replica 2 to replica 0, of 1 element of 8 bytes, which replica 0 "
                    "does not receive") != std::string::npos);
  }
  SUBCASE("a missing send") {
    graph.receive(0, 1, of(2));
    const std::string text = support::what_throws<dist::CollectiveMismatch>([&] { graph.compare().raise(); });
    CHECK(text.find("message 1 from replica 0 to replica 1, of 2 elements of 8 bytes, which replica 0 does not send") !=
          std::string::npos);
  }
}
