#include <dist/comm/memory_collectives.hpp>

#include <doctest/doctest.h>

#include <support/stderr_of.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include <dist/comm/self.hpp>
#include <dist/comm/thread/communicator.hpp>
#include <dist/device/replica_threads.hpp>

TEST_CASE("every member gets the root's values, and the root keeps them") {
  constexpr std::size_t members = 3;
  dist::ReplicaThreads threads{members};
  dist::ThreadGroup group{threads.status(), threads.spin_budget(), std::chrono::minutes{1}};
  for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{5000}})
    for (std::size_t root = 0; root < members; ++root) {
      CAPTURE(count);
      CAPTURE(root);
      std::vector<std::vector<std::int32_t>> values(members, std::vector<std::int32_t>(count));
      for (std::size_t rank = 0; rank < members; ++rank)
        std::iota(values[rank].begin(), values[rank].end(), static_cast<std::int32_t>(10000 * rank));
      const std::vector<std::int32_t> expected = values[root];
      threads.run([&](std::size_t rank) {
        dist::broadcast(dist::ThreadCommunicator{group, rank}, root, std::span<std::int32_t>{values[rank]});
        // No member reads another one's values after the call.
        for (std::int32_t& value : values[rank]) value += 1;
      });
      for (const std::vector<std::int32_t>& received : values) {
        std::size_t wrong = 0;
        for (std::size_t i = 0; i < count; ++i) wrong += received[i] != expected[i] + 1;
        CHECK(wrong == 0);
      }
    }
}

TEST_CASE("a root out of range violates the contract") {
  const auto ending = testing::stderr_of([] {
    dist::ReplicaThreads threads{1};
    dist::ThreadGroup group{threads.status(), threads.spin_budget(), std::chrono::minutes{1}};
    float value = 1;
    dist::broadcast(dist::ThreadCommunicator{group, 0}, 1, std::span<float>{&value, 1});
  });
  CHECK(ending.aborted);
  CHECK(ending.says("root < comm_.size()"));
}

TEST_CASE("all_gather concatenates different numbers of values in rank order (spec E06)") {
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

TEST_CASE("a member's values may already be in place") {
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

TEST_CASE("with different counts of the same sum, no member reads beyond its peers' values (spec E12)") {
  dist::ReplicaThreads threads(2);
  dist::ThreadGroup group(threads.status(), threads.spin_budget(), std::chrono::minutes{1});
  std::string message;
  try {
    threads.run([&](std::size_t rank) {
      // Each member has one element, and expects two from the other one.
      const std::array<std::size_t, 2> counts{1 + rank, 2 - rank};
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
  CHECK(message.find("with different element counts of the replicas") != std::string::npos);
}

TEST_CASE("the order of counts is compared") {
  using dist::detail::hash_of;
  const auto checksum = [](std::vector<std::size_t> counts) { return dist::detail::hash_of_numbers(counts); };
  CHECK(checksum({1, 2}) == checksum({1, 2}));
  CHECK(checksum({1, 2}) != checksum({2, 1}));
  CHECK(checksum({0, 3}) != checksum({3, 0}));
  CHECK(checksum({0, 0, 1}) != checksum({0, 1, 0}));
}

TEST_CASE("counts that differ from the numbers of values violate the contract") {
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
  CHECK(gather(2, 3, 3).says("mine.size() == counts[comm_.rank()]"));
  CHECK(gather(2, 2, 3).says("== all.size()"));
}

TEST_CASE("in a group of one, all_gather is a copy (spec H03)") {
  const std::vector<int> mine{4, 5};
  const std::vector<std::size_t> counts{2};
  std::vector<int> all(2);
  dist::SelfCollectives::all_gather(std::span<const int>{mine}, std::span<const std::size_t>{counts},
                                    std::span<int>{all});
  CHECK(all == mine);
}

TEST_CASE("policies of members with shared memory share the same collectives") {
  constexpr std::size_t members = 3;
  dist::ReplicaThreads threads(members);
  dist::ThreadGroup group(threads.status(), threads.spin_budget(), std::chrono::minutes{1});
  const std::vector<std::size_t> counts(members, 1);
  std::vector<std::size_t> wrong(members);
  threads.run([&](std::size_t rank) {
    const dist::SharedMemoryCollectives collectives{dist::ThreadCommunicator{group, rank}};
    wrong[rank] += collectives.communicator().rank() != rank;
    std::size_t value = rank;
    collectives.broadcast(2, std::span<std::size_t>{&value, 1});
    wrong[rank] += value != 2;
    std::vector<std::size_t> all(members);
    collectives.all_gather(std::span<const std::size_t>{&rank, 1}, std::span<const std::size_t>{counts},
                           std::span<std::size_t>{all});
    wrong[rank] += all != std::vector<std::size_t>{0, 1, 2};
    collectives.all_gather_values("ranks", rank + 5, std::span<std::size_t>{all});
    wrong[rank] += all != std::vector<std::size_t>{5, 6, 7};
  });
  CHECK(wrong == std::vector<std::size_t>(members));
}
