#include <dist/comm/all_gather.hpp>

#include <doctest/doctest.h>
#include <support/stderr_of.hpp>

#include <dist/comm/self.hpp>
#include <dist/comm/thread/communicator.hpp>
#include <dist/device/replica_threads.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <exception>
#include <span>
#include <string>
#include <vector>

TEST_CASE("different numbers of values are concatenated in rank order (spec E06)") {
  for (const std::size_t members : {std::size_t{1}, std::size_t{2}, std::size_t{3}, std::size_t{4}}) {
    dist::ReplicaThreads threads(members);
    dist::ThreadGroup group(threads.status(), threads.spin_budget(), std::chrono::minutes{1});
    std::vector<std::size_t> counts(members);
    std::vector<int> expected;
    for (std::size_t rank = 0; rank < members; ++rank) {
      counts[rank] = (rank + 1) % 3;
      for (std::size_t i = 0; i < counts[rank]; ++i) expected.push_back(static_cast<int>(10 * rank + i));
    }
    std::vector<std::vector<int>> all(members, std::vector<int>(expected.size()));
    threads.run([&](std::size_t rank) {
      std::vector<int> mine(counts[rank]);
      for (std::size_t i = 0; i < mine.size(); ++i) mine[i] = static_cast<int>(10 * rank + i);
      dist::all_gather(dist::ThreadCommunicator{group, rank}, std::span<const int>{mine},
                       std::span<const std::size_t>{counts}, std::span<int>{all[rank]});
    });
    for (const std::vector<int>& result : all) CHECK(result == expected);
  }
}

TEST_CASE("a member's values may stand in their place already") {
  constexpr std::size_t members = 3;
  dist::ReplicaThreads threads(members);
  dist::ThreadGroup group(threads.status(), threads.spin_budget(), std::chrono::minutes{1});
  const std::vector<std::size_t> counts{1, 0, 2};
  std::vector<std::array<int, 3>> all(members);
  threads.run([&](std::size_t rank) {
    const std::span<int> mine = std::span{all[rank]}.subspan(rank == 0 ? 0 : 1, counts[rank]);
    for (int& value : mine) value = static_cast<int>(rank) + 5;
    dist::all_gather(dist::ThreadCommunicator{group, rank}, std::span<const int>{mine},
                     std::span<const std::size_t>{counts}, std::span<int>{all[rank]});
  });
  for (const std::array<int, 3>& result : all) CHECK(result == std::array<int, 3>{5, 7, 7});
}

TEST_CASE("members that give other counts of the same sum read nothing beyond their peers' values (spec E12)") {
  dist::ReplicaThreads threads(2);
  dist::ThreadGroup group(threads.status(), threads.spin_budget(), std::chrono::minutes{1});
  std::string message;
  try {
    threads.run([&](std::size_t rank) {
      const std::array<std::size_t, 2> counts{1 + rank, 2 - rank};  // both have one element, and take the other for two
      const int mine = 0;
      std::array<int, 3> all{};
      dist::all_gather(dist::ThreadCommunicator{group, rank}, std::span<const int>{&mine, 1},
                       std::span<const std::size_t>{counts}, std::span<int>{all});
    });
  } catch (const dist::ReplicaError& error) {
    CHECK_THROWS_AS(std::rethrow_exception(error.cause()), dist::CollectiveMismatch);
    message = error.what();
  }
  CAPTURE(message);
  CHECK(message.find("with other counts of the replicas' elements") != std::string::npos);
}

TEST_CASE("counts are told apart by their order too") {
  using dist::detail::hash_of;
  const auto checksum = [](std::vector<std::size_t> counts) { return dist::detail::hash_of_numbers(counts); };
  CHECK(checksum({1, 2}) == checksum({1, 2}));
  CHECK(checksum({1, 2}) != checksum({2, 1}));
  CHECK(checksum({0, 3}) != checksum({3, 0}));
  CHECK(checksum({0, 0, 1}) != checksum({0, 1, 0}));
}

TEST_CASE("counts that are not those of the values break the contract") {
  const auto gather = [](std::size_t mine, std::size_t count, std::size_t all) {
    return testing::stderr_of([=] {
      dist::ReplicaThreads threads{1};
      dist::ThreadGroup group{threads.status(), threads.spin_budget(), std::chrono::minutes{1}};
      const std::vector<int> values(mine);
      std::vector<int> result(all);
      dist::all_gather(dist::ThreadCommunicator{group, 0}, std::span<const int>{values},
                       std::span<const std::size_t>{&count, 1}, std::span<int>{result});
    });
  };
  CHECK(gather(2, 3, 3).says("mine.size() == counts[comm.rank()]"));
  CHECK(gather(2, 2, 3).says("== all.size()"));
}

TEST_CASE("of a group of one it is a copy (spec H03)") {
  const std::vector<int> mine{4, 5};
  const std::vector<std::size_t> counts{2};
  std::vector<int> all(2);
  dist::SelfCollectives::all_gather(std::span<const int>{mine}, std::span<const std::size_t>{counts},
                                    std::span<int>{all});
  CHECK(all == mine);
}
