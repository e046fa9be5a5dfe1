#include <dist/comm/memory/thread_all_reduce.hpp>

#include <chrono>
#include <cstddef>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

#include <dist/comm/cross_device_ops.hpp>
#include <dist/comm/thread/communicator.hpp>
#include <dist/device/replica_threads.hpp>

#include <doctest/doctest.h>

#include <conformance/cross_device_ops.hpp>

TEST_CASE_TEMPLATE_INSTANTIATE(cross_device_ops, dist::ThreadAllReduce);

TEST_CASE("ThreadAllReduce is a policy: empty, with a name (spec H02)") {
  static_assert(dist::CrossDeviceOps<dist::ThreadAllReduce, dist::ThreadCommunicator>);
  static_assert(std::is_same_v<dist::SharedMemoryAllReduce, dist::ThreadAllReduce>);  // former name, until version 0.3
  CHECK(dist::ThreadAllReduce::name == std::string_view{"ThreadAllReduce"});
}

TEST_CASE("operands larger than the caches are reduced and applied correctly (spec H09)") {
  for (const std::size_t members : {std::size_t{1}, std::size_t{2}, std::size_t{3}, std::size_t{5}}) {
    CAPTURE(members);
    dist::ReplicaThreads threads{members};
    dist::ThreadGroup group{threads.status(), threads.spin_budget(), std::chrono::minutes{1}};
    constexpr std::size_t size = (std::size_t{1} << 18) + 5;
    static_assert(dist::detail::exceeds_caches<float>(size));
    std::vector<std::size_t> mistakes(members);
    threads.run([&](std::size_t rank) {
      const dist::ThreadAllReduce::On<dist::ThreadCommunicator> ops{dist::ThreadCommunicator{group, rank}};
      // Small whole numbers, so that sums are exact in any order.
      const auto gradient_of = [](std::size_t member, std::size_t i) {
        return static_cast<float>(i % 13) + static_cast<float>(member);
      };
      const auto sum_of_all = [&](std::size_t i) {
        float total = 0;
        for (std::size_t member = 0; member < members; ++member) total += gradient_of(member, i);
        return total;
      };
      std::vector<float> gradient(size);
      std::vector<float> mirror(size, 1000);
      for (std::size_t i = 0; i < size; ++i) gradient[i] = gradient_of(rank, i);
      ops.reduce_and_apply(dist::sum, std::span<const float>{gradient}, std::span<float>{mirror},
                           [](std::size_t, float weight, float reduced) { return weight - reduced; });
      std::vector<float> terms(size);
      for (std::size_t i = 0; i < size; ++i) terms[i] = static_cast<float>(i % 3);
      ops.update_shards(std::span<const float>{terms}, std::span<float>{mirror},
                        [](std::size_t i, float weight, float term) {
                          return term == static_cast<float>(i % 3) ? weight + term : -1;
                        });
      for (std::size_t i = 0; i < size; ++i)
        mistakes[rank] +=
            gradient[i] != gradient_of(rank, i) || mirror[i] != 1000 - sum_of_all(i) + static_cast<float>(i % 3);
      ops.all_reduce(dist::sum, std::span<float>{gradient});
      for (std::size_t i = 0; i < size; ++i) mistakes[rank] += gradient[i] != sum_of_all(i);
    });
    CHECK(mistakes == std::vector<std::size_t>(members));
  }
}
