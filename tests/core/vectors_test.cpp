#include <dist/core/vectors.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include <doctest/doctest.h>

TEST_CASE("the body is called once, with the width of vectors that the processor has") {
  std::size_t calls = 0;
  std::size_t width = 0;
  float sums[37];
  dist::detail::with_widest_vectors([&]<std::size_t Bytes>() DIST_INLINE_LAMBDA {
    ++calls;
    width = Bytes;
    for (std::size_t i = 0; i < std::size(sums); ++i) sums[i] = static_cast<float>(i) + 0.5f;
  });
  CHECK(calls == 1);
  CHECK(width >= dist::detail::vector_bytes);
  CHECK((width == 16 || width == 32 || width == 64));
#ifdef DIST_DISPATCHES_VECTORS
  if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
    CHECK(width == 64);
  else if (__builtin_cpu_supports("avx2"))
    CHECK(width >= 32);
#endif
  for (std::size_t i = 0; i < std::size(sums); ++i) CHECK(sums[i] == static_cast<float>(i) + 0.5f);
}

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

TEST_CASE("a copy past the caches copies just what it is given, wherever it lies") {
  check_stream_copy<std::uint8_t>();
  check_stream_copy<std::int16_t>();
  check_stream_copy<float>();
  check_stream_copy<double>();
}

TEST_CASE("a copy past the caches to memory that no element is aligned to") {
  alignas(16) std::array<std::byte, 256> bytes{};
  float* const to = reinterpret_cast<float*>(bytes.data() + 2);
  std::array<float, 40> from{};
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<float>(i) - 3;
  dist::detail::stream_copy(reinterpret_cast<const std::uint16_t*>(from.data()), 2 * from.size(),
                            reinterpret_cast<std::uint16_t*>(bytes.data() + 2));
  dist::detail::finish_streams();
  CHECK(std::memcmp(to, from.data(), sizeof from) == 0);
}

TEST_CASE("prefetching is advice: it may reach beyond what there is") {
  const float one = 1;
  dist::detail::prefetch(&one, &one + 1);
  dist::detail::prefetch(nullptr, nullptr);
  CHECK(one == 1);
}
