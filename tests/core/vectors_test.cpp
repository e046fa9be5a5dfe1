#define DIST_DISPATCH_VECTORS 1
#include <dist/core/vectors.hpp>

#include <cstddef>
#include <cstdint>
#include <iterator>

#include <doctest/doctest.h>

TEST_CASE("the body is called once, with the vector width of the processor") {
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

TEST_CASE_TEMPLATE("lanes are indexed like an array", T, bool, std::int8_t, std::uint64_t, float, double, long double) {
  dist::detail::Lanes<T, 8> lanes;
  static_assert(sizeof(lanes) == 8 * sizeof(T));
  for (std::size_t lane = 0; lane < 8; ++lane) lanes[lane] = static_cast<T>(lane % 2);
  for (std::size_t lane = 0; lane < 8; ++lane) CHECK(static_cast<T>(lanes[lane]) == static_cast<T>(lane % 2));
}
