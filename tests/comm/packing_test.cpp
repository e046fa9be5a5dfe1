#include <dist/comm/packing.hpp>

#include <doctest/doctest.h>

#include <dist/comm/shared_memory_all_reduce.hpp>
#include <dist/strategy/mirrored.hpp>

#include <cstddef>
#include <span>
#include <vector>

using dist::IndexRange;
using dist::PackByBytes;
using dist::PackByCount;

namespace {

struct Pair {
  std::size_t begin, end;
  friend bool operator==(const Pair&, const Pair&) = default;
};
std::vector<Pair> pairs(const std::vector<IndexRange>& ranges) {
  std::vector<Pair> result;
  for (const IndexRange range : ranges) result.push_back({range.begin, range.end});
  return result;
}
std::vector<Pair> by_bytes(std::vector<std::size_t> bytes, std::size_t limit) {
  return pairs(dist::packs_by_bytes(bytes, limit));
}

/// Counts the collectives that pass through.
struct Counting {
  std::size_t* calls;
  template <class T, class Op>
  void all_reduce(Op, std::span<T> values) const {
    ++*calls;
    for (T& value : values) value = static_cast<T>(2 * value);
  }
};

}  // namespace

TEST_CASE("packs by count have total / packs elements, the last the remainder too (spec H07)") {
  CHECK(pairs(dist::packs_by_count(10, 3)) == std::vector<Pair>{{0, 3}, {3, 6}, {6, 10}});
  CHECK(pairs(dist::packs_by_count(10, 1)) == std::vector<Pair>{{0, 10}});
  CHECK(pairs(dist::packs_by_count(2, 3)) == std::vector<Pair>{{0, 2}});  // 2 / 3 = 0: the last takes all
  CHECK(pairs(dist::packs_by_count(0, 2)).empty());
}

TEST_CASE("a pack by bytes is closed only once it is more than the limit, from the last tensor on (spec H12, 4.1)") {
  CHECK(by_bytes({10, 20, 30, 40}, 0) == std::vector<Pair>{{0, 4}});
  // 40 is not more than 40, so 30 joins: 70. Then 20, 10: 30.
  CHECK(by_bytes({10, 20, 30, 40}, 40) == std::vector<Pair>{{2, 4}, {0, 2}});
  CHECK(by_bytes({10, 20, 30, 40}, 39) == std::vector<Pair>{{3, 4}, {1, 3}, {0, 1}});
  CHECK(by_bytes({10, 20, 30, 40}, 1) == std::vector<Pair>{{3, 4}, {2, 3}, {1, 2}, {0, 1}});
  CHECK(by_bytes({10, 20, 30, 40}, 1000) == std::vector<Pair>{{0, 4}});
  CHECK(by_bytes({0, 0, 5}, 4) == std::vector<Pair>{{2, 3}, {0, 2}});
  CHECK(by_bytes({}, 10).empty());
}

TEST_CASE("as many collectives as packs; results stand where the tensors do (spec H07, H09, H12)") {
  for (const bool adjacent : {true, false}) {
    const auto calls_with = [&](auto packing) {
      std::vector<float> memory(20);
      for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<float>(i);
      const std::size_t gap = adjacent ? 0 : 2;
      const std::vector<std::span<float>> tensors{
          std::span{memory}.subspan(0, 4), std::span{memory}.subspan(4 + gap, 0), std::span{memory}.subspan(4 + gap, 6),
          std::span{memory}.subspan(10 + 2 * gap, 3)};
      std::size_t calls = 0;
      dist::batch_all_reduce(Counting{&calls}, dist::sum, std::span<const std::span<float>>{tensors}, packing);
      std::vector<float> expected(20);
      for (std::size_t i = 0; i < expected.size(); ++i) expected[i] = static_cast<float>(i);
      for (const std::span<float> tensor : tensors)
        for (float& element : tensor) expected[static_cast<std::size_t>(&element - memory.data())] *= 2;
      CHECK(memory == expected);
      return calls;
    };
    CHECK(calls_with(PackByCount{0}) == 4);
    CHECK(calls_with(PackByCount{1}) == 1);
    CHECK(calls_with(PackByCount{3}) == 3);
    CHECK(calls_with(PackByBytes{0}) == 1);
    // 12 bytes, then 24 more as 12 is not more than 12: 36; then 0 and 16 bytes.
    CHECK(calls_with(PackByBytes{12}) == 2);
  }
}

TEST_CASE("packed or not, every replica gets the same sums (spec H09)") {
  for (const std::size_t replicas : {std::size_t{1}, std::size_t{2}, std::size_t{3}, std::size_t{4}}) {
    dist::Mirrored<dist::SharedMemoryAllReduce> strategy{replicas};
    const auto check = [&](auto packing) {
      std::vector<std::size_t> wrong(replicas);
      strategy.run([&](auto& replica) {
        const std::size_t rank = replica.local_index();
        // On odd replicas the tensors lie behind each other, on even ones apart.
        std::vector<float> memory(100, static_cast<float>(rank + 1));
        const std::size_t gap = rank % 2 == 0 ? 5 : 0;
        const std::vector<std::span<float>> tensors{std::span{memory}.subspan(0, 30),
                                                    std::span{memory}.subspan(30 + gap, 1),
                                                    std::span{memory}.subspan(31 + 2 * gap, 40)};
        dist::batch_all_reduce(replica.collectives(), dist::sum, std::span<const std::span<float>>{tensors}, packing);
        const auto expected = static_cast<float>(replicas * (replicas + 1) / 2);
        for (const std::span<float> tensor : tensors)
          for (const float element : tensor) wrong[rank] += element != expected;
      });
      CHECK(wrong == std::vector<std::size_t>(replicas));
    };
    check(PackByCount{0});
    check(PackByCount{2});
    check(PackByBytes{0});
    check(PackByBytes{100});
  }
}
