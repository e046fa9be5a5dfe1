#include <dist/comm/ring_all_reduce.hpp>
// optimised

#include <doctest/doctest.h>
#include <conformance/cross_device_ops.hpp>

#include <algorithm>
#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

TEST_CASE_TEMPLATE_INSTANTIATE(cross_device_ops, dist::RingAllReduce);

namespace {

inline thread_local std::size_t combined_here = 0;

/// A sum that counts the combinations of each replica.
struct CountingSum : dist::Sum {
  static constexpr std::string_view name = "counting_sum";
  template <dist::Reducible T>
  T operator()(T a, T b) const {
    ++combined_here;
    return a + b;
  }
};

}  // namespace

TEST_CASE("every replica does the same share of the additions (spec H18)") {
  for (const std::size_t replicas : conformance::group_sizes) {
    CAPTURE(replicas);
    dist::Mirrored<dist::RingAllReduce> strategy{replicas};
    const std::size_t elements = 1024 * replicas;
    const auto additions = strategy.run([&](auto& replica) {
      combined_here = 0;
      std::vector<float> values(elements, 1.0f);
      replica.collectives().all_reduce(CountingSum{}, std::span<float>{values});
      return combined_here;
    });
    for (const std::size_t count : additions) CHECK(count == (replicas - 1) * 1024);
  }
}

TEST_CASE("chunks have at most 4 MiB, in at most two parts (spec H18)") {
  constexpr std::size_t mib = std::size_t{1} << 20;
  CHECK(dist::detail::ring_subdivisions(0, 4) == 1);
  CHECK(dist::detail::ring_subdivisions(16 * mib, 4) == 1);
  CHECK(dist::detail::ring_subdivisions(16 * mib + 1, 4) == 2);
  CHECK(dist::detail::ring_subdivisions(1000 * mib, 4) == 2);
}

TEST_CASE("tensors in two parts are reduced like others (spec H18)") {
  dist::Mirrored<dist::RingAllReduce> strategy{2};
  constexpr std::size_t elements = (std::size_t{9} << 20) / sizeof(float) + 3;
  const auto wrong = strategy.run([](auto& replica) {
    std::vector<float> values(elements);
    for (std::size_t i = 0; i < elements; ++i) values[i] = static_cast<float>(i % 1000 + replica.local_index());
    std::vector<float> mirror(elements, 1.0f);
    replica.collectives().reduce_and_apply(dist::sum, std::span<const float>{values}, std::span<float>{mirror},
                                           [](std::size_t, float weight, float reduced) { return weight + reduced; });
    std::vector<float> sums(elements);
    std::vector<float> halves(elements);
    replica.collectives().reduce_scatter(dist::sum, std::span<const float>{values},
                                         [&](std::size_t first, std::span<const float> reduced) {
                                           std::copy(reduced.begin(), reduced.end(), sums.data() + first);
                                         });
    replica.collectives().update_shards(std::span<const float>{sums}, std::span<float>{halves},
                                        [](std::size_t, float, float reduced) { return reduced; });
    replica.collectives().all_reduce(dist::sum, std::span<float>{values});
    std::size_t mistakes = 0;
    for (std::size_t i = 0; i < elements; ++i) {
      const auto expected = static_cast<float>(2 * (i % 1000) + 1);
      mistakes += values[i] != expected || mirror[i] != expected + 1 || halves[i] != expected;
    }
    return mistakes;
  });
  CHECK(wrong[0] == 0);
  CHECK(wrong[1] == 0);
}
