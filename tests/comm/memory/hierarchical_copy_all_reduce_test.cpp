#include <dist/comm/memory/hierarchical_copy_all_reduce.hpp>

#include <doctest/doctest.h>
#include <conformance/cross_device_ops.hpp>

#include <chrono>
#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

TEST_CASE_TEMPLATE_INSTANTIATE(cross_device_ops, dist::HierarchicalCopyAllReduce);

TEST_CASE("all_reduce of several tensors per step is correct whichever replicas combine them (spec H06)") {
  for (const std::size_t replicas : conformance::group_sizes) {
    CAPTURE(replicas);
    dist::Mirrored<dist::HierarchicalCopyAllReduce> strategy{replicas};
    const auto wrong = strategy.run([&](auto& replica) {
      std::size_t mistakes = 0;
      for (std::size_t tensor = 0; tensor < 2 * replicas + 1; ++tensor) {
        std::vector<double> values(10, static_cast<double>(replica.local_index() + tensor));
        replica.collectives().all_reduce(dist::sum, std::span<double>{values});
        const auto expected = static_cast<double>(replicas * (replicas - 1) / 2 + replicas * tensor);
        for (const double value : values) mistakes += value != expected;
      }
      return mistakes;
    });
    for (const std::size_t mistakes : wrong) CHECK(mistakes == 0);
  }
}

namespace {

inline thread_local std::size_t combined_here = 0;

/// A sum that counts the additions of each replica.
struct CountingSum : dist::Sum {
  static constexpr std::string_view name = "counting_sum";
  template <dist::Reducible T>
  T operator()(T a, T b) const {
    ++combined_here;
    return a + b;
  }
};

/// Returns how many additions each of `replicas` replicas makes for each of `tensors` tensors of 10 elements.
std::vector<std::vector<std::size_t>> additions(std::size_t replicas, std::size_t tensors) {
  dist::Mirrored<dist::HierarchicalCopyAllReduce> strategy{replicas};
  std::vector<std::vector<std::size_t>> counts(tensors, std::vector<std::size_t>(replicas));
  strategy.run([&](auto& replica) {
    for (std::size_t tensor = 0; tensor < tensors; ++tensor) {
      combined_here = 0;
      std::vector<float> values(10, 1.0f);
      replica.collectives().all_reduce(CountingSum{}, std::span<float>{values});
      counts[tensor][replica.local_index()] = combined_here;
    }
  });
  return counts;
}

}  // namespace

TEST_CASE("one replica of each group combines, and the next tensor uses the next replica (spec H06)") {
  // Groups {0, 1} and {2, 3}: 10 additions within each group and 10 across, by 0 and 2, then 1 and 3, then 0 and 2.
  const std::vector<std::size_t> first{20, 0, 20, 0};
  const std::vector<std::size_t> second{0, 20, 0, 20};
  CHECK(additions(4, 3) == std::vector<std::vector<std::size_t>>{first, second, first});
}

TEST_CASE("a timeout for one call on one replica does not affect later calls") {
  using namespace std::chrono_literals;
  dist::Mirrored<dist::HierarchicalCopyAllReduce> strategy{4};
  const auto totals = strategy.run([](auto& replica) {
    std::vector<float> values(100, 1.0f);
    for (int call = 0; call < 3; ++call) {
      dist::CommunicationOptions options;
      if (replica.local_index() == 2 && call != 1) options.timeout = 60s;
      replica.all_reduce(dist::sum, std::span<float>{values}, options);
    }
    return values[99];
  });
  for (const float total : totals) CHECK(total == 64);
}

TEST_CASE(
    "the second group has the extra replica of an odd number, and the first group of one replica is empty (spec H06)") {
  // Groups {0} and {1, 2}: replica 0 adds only across groups, one of the others within its group as well.
  CHECK(additions(3, 3) == std::vector<std::vector<std::size_t>>{{10, 20, 0}, {10, 0, 20}, {10, 20, 0}});
  CHECK(additions(1, 2) == std::vector<std::vector<std::size_t>>{{0}, {0}});
}
