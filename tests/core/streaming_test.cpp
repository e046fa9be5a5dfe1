#include <dist/core/streaming.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include <doctest/doctest.h>

namespace {

template <class T>
void check_stream_copy() {
  constexpr std::size_t largest = 100;
  std::vector<T> from(largest + 4);
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<T>(i * 3 + 1);
  std::size_t mistakes = 0;
  for (std::size_t source = 0; source < 3; ++source)
    for (std::size_t target = 0; target < 4; ++target)
      for (std::size_t count = 0; count <= largest; ++count) {
        std::vector<T> to(largest + 8, T{7});
        dist::detail::stream_copy(from.data() + source, count, to.data() + target);
        dist::detail::finish_streams();
        for (std::size_t i = 0; i < to.size(); ++i) {
          const bool copied = i >= target && i < target + count;
          mistakes += to[i] != (copied ? from[source + i - target] : T{7});
        }
      }
  CHECK(mistakes == 0);
}

}  // namespace

TEST_CASE("a streaming copy copies exactly its elements, at any address") {
  check_stream_copy<std::uint8_t>();
  check_stream_copy<std::int16_t>();
  check_stream_copy<float>();
  check_stream_copy<double>();
}

TEST_CASE("a streaming copy supports misaligned targets") {
  alignas(16) std::array<std::byte, 256> bytes{};
  float* const to = reinterpret_cast<float*>(bytes.data() + 2);
  std::array<float, 40> from{};
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<float>(i) - 3;
  dist::detail::stream_copy(reinterpret_cast<const std::uint16_t*>(from.data()), 2 * from.size(),
                            reinterpret_cast<std::uint16_t*>(bytes.data() + 2));
  dist::detail::finish_streams();
  CHECK(std::memcmp(to, from.data(), sizeof from) == 0);
}

TEST_CASE("prefetching beyond valid memory is harmless") {
  const float one = 1;
  dist::detail::prefetch(&one, &one + 1);
  dist::detail::prefetch(nullptr, nullptr);
  CHECK(one == 1);
}

TEST_CASE("other members get a copy, unless they share the memory") {
  for (const bool past_caches : {false, true}) {
    std::array<float, 40> mine{};
    for (std::size_t i = 0; i < mine.size(); ++i) mine[i] = static_cast<float>(i);
    std::array<float, 40> other{};
    float* const places[] = {mine.data(), other.data(), mine.data()};
    dist::detail::copy_to_others<float>(
        3, [&](std::size_t rank) { return places[rank]; }, std::span<const float>{mine}, past_caches);
    dist::detail::finish_streams();
    CHECK(other == mine);
  }
}

TEST_CASE("one mebibyte or more exceeds the caches") {
  CHECK(!dist::detail::exceeds_caches<float>((1 << 18) - 1));
  CHECK(dist::detail::exceeds_caches<float>(1 << 18));
  CHECK(dist::detail::exceeds_caches<double>(1 << 17));
}
