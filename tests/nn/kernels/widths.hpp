#pragma once

#include <cstddef>
#include <vector>

#include <dist/core/vectors.hpp>
#include <support/sanitizers.hpp>

/// Calls `test(at_width)` for every vector width of the processor; `at_width(body)` runs a kernel's body compiled for
/// it. Under sanitizers only for the widest, because such bodies take minutes to compile.
template <class Test>
void for_each_width(Test&& test) {
#ifdef DIST_TEST_ADDRESS_SANITIZER
  test([](const auto& body) { dist::detail::with_widest_vectors(body); });
#else
  test([](const auto& body) { body.template operator()<16>(); });
#ifdef DIST_DISPATCHES_VECTORS
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    test([](const auto& body) { dist::detail::with_avx2(body); });
  if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
    test([](const auto& body) { dist::detail::with_avx512(body); });
#endif
#endif
}

/// Numbers between -1 and 1, some of them 0. The period is longer than any size here.
template <class T>
[[nodiscard]] std::vector<T> numbers(std::size_t count, unsigned seed) {
  std::vector<T> values(count);
  unsigned state = seed * 2654435761u + 12345u;
  for (T& value : values) {
    state = state * 1664525u + 1013904223u;
    const auto step = static_cast<int>(state >> 16) % 2001 - 1000;
    value = step % 17 == 0 ? T{0} : static_cast<T>(step) / T{1000};
  }
  return values;
}
