#include <dist/core/vectors.hpp>

#include <cstddef>
#include <iterator>

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
