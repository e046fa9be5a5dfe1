#include <dist/comm/memory_collectives.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include <dist/comm/thread/communicator.hpp>
#include <dist/device/replica_threads.hpp>

#include <doctest/doctest.h>
#include <support/stderr_of.hpp>

TEST_CASE("every member gets the root's values, and the root keeps its own") {
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
        // Nobody reads a member's values any more once the call has returned.
        for (std::int32_t& value : values[rank]) value += 1;
      });
      for (const std::vector<std::int32_t>& received : values) {
        std::size_t wrong = 0;
        for (std::size_t i = 0; i < count; ++i) wrong += received[i] != expected[i] + 1;
        CHECK(wrong == 0);
      }
    }
}

TEST_CASE("a root that is no member breaks the contract") {
  const auto ending = testing::stderr_of([] {
    dist::ReplicaThreads threads{1};
    dist::ThreadGroup group{threads.status(), threads.spin_budget(), std::chrono::minutes{1}};
    float value = 1;
    dist::broadcast(dist::ThreadCommunicator{group, 0}, 1, std::span<float>{&value, 1});
  });
  CHECK(ending.aborted);
  CHECK(ending.says("root < comm.size()"));
}
