#include <dist/comm/all_gather.hpp>

#include <doctest/doctest.h>

#include <dist/comm/self.hpp>
#include <dist/comm/thread.hpp>
#include <dist/device/replica_threads.hpp>

#include <chrono>
#include <cstddef>
#include <span>
#include <vector>

TEST_CASE("values of different number stand behind each other in rank order (spec E06)") {
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

TEST_CASE("of a group of one it is a copy (spec H03)") {
  const std::vector<int> mine{4, 5};
  const std::vector<std::size_t> counts{2};
  std::vector<int> all(2);
  dist::SelfCollectives::all_gather(std::span<const int>{mine}, std::span<const std::size_t>{counts},
                                    std::span<int>{all});
  CHECK(all == mine);
}
