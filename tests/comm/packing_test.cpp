#include <dist/comm/packing.hpp>

#include <doctest/doctest.h>

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

/// Counts collectives, and records the addresses of the last one.
struct Counting {
  std::size_t* calls;
  const void** place = nullptr;
  template <class T, class Op>
  void all_reduce(Op, std::span<T> values) const {
    ++*calls;
    if (place != nullptr) *place = values.data();
    for (T& value : values) value = static_cast<T>(2 * value);
  }
};

}  // namespace

TEST_CASE("packs by count have total / packs elements, the last one also the remainder (spec H07)") {
  CHECK(pairs(dist::packs_by_count(10, 3)) == std::vector<Pair>{{0, 3}, {3, 6}, {6, 10}});
  CHECK(pairs(dist::packs_by_count(10, 1)) == std::vector<Pair>{{0, 10}});
  CHECK(pairs(dist::packs_by_count(2, 3)) == std::vector<Pair>{{0, 2}});  // 2 / 3 = 0: the last one takes all
  CHECK(pairs(dist::packs_by_count(0, 2)).empty());
}

TEST_CASE("a pack by bytes is closed once it exceeds the limit, starting with the last tensor (spec H12, 4.1)") {
  CHECK(by_bytes({10, 20, 30, 40}, 0) == std::vector<Pair>{{0, 4}});
  // 40 does not exceed 40, so 30 joins: 70. Then 20 + 10: 30.
  CHECK(by_bytes({10, 20, 30, 40}, 40) == std::vector<Pair>{{2, 4}, {0, 2}});
  CHECK(by_bytes({10, 20, 30, 40}, 39) == std::vector<Pair>{{3, 4}, {1, 3}, {0, 1}});
  CHECK(by_bytes({10, 20, 30, 40}, 1) == std::vector<Pair>{{3, 4}, {2, 3}, {1, 2}, {0, 1}});
  CHECK(by_bytes({10, 20, 30, 40}, 1000) == std::vector<Pair>{{0, 4}});
  CHECK(by_bytes({0, 0, 5}, 4) == std::vector<Pair>{{2, 3}, {0, 2}});
  CHECK(by_bytes({}, 10).empty());
}

TEST_CASE("one collective per pack, with the results in the tensors (spec H07, H09, H12)") {
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
    // 12 bytes, then 24 more because 12 does not exceed 12: 36; then 0 and 16 bytes.
    CHECK(calls_with(PackByBytes{12}) == 2);
  }
}

TEST_CASE("adjacent tensors are reduced in place, others in a copy (spec H07, H12)") {
  std::vector<float> memory(20);
  const auto place_with = [&](std::size_t gap, auto packing) {
    const std::vector<std::span<float>> tensors{std::span{memory}.subspan(0, 4), std::span{memory}.subspan(18, 0),
                                                std::span{memory}.subspan(4 + gap, 6)};
    std::size_t calls = 0;
    const void* place = nullptr;
    dist::batch_all_reduce(Counting{&calls, &place}, dist::sum, std::span<const std::span<float>>{tensors}, packing);
    CHECK(calls == 1);
    return place;
  };
  CHECK(place_with(0, PackByBytes{0}) == memory.data());
  CHECK(place_with(0, PackByCount{1}) == memory.data());
  CHECK(place_with(1, PackByBytes{0}) != memory.data());
  CHECK(place_with(1, PackByCount{1}) != memory.data());
}
