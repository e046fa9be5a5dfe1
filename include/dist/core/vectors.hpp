#pragma once

#include <concepts>
#include <cstddef>
#include <type_traits>

#include <dist/core/config.hpp>

namespace dist::detail {

/// Bytes of the widest vector registers for which this translation unit is compiled.
#if defined(__AVX512F__)
inline constexpr std::size_t vector_bytes = 64;
#elif defined(__AVX2__)
inline constexpr std::size_t vector_bytes = 32;
#else
inline constexpr std::size_t vector_bytes = 16;
#endif

/// Returns the bytes of the widest vectors that the environment allows: with DIST_MAX_ISA=sse41 16, avx2 32, avx512 64,
/// and without it the largest number. The widths decide the order of sums. Reads the variable once. Throws
/// InvalidArgument for other values.
[[nodiscard]] std::size_t max_vector_bytes();
/// Throws InvalidArgument, because this code is compiled for wider vectors than DIST_MAX_ISA allows.
[[noreturn]] void refuse_vectors(std::size_t bytes);

/// The type of `count` numbers that a loop processes in parallel: clang vectorises vector types, g++ vectorises arrays.
template <class T, std::size_t count>
struct LanesOf {
  using Type = T[count];
};
#ifdef __clang__
template <class T, std::size_t count>
  requires(std::is_arithmetic_v<T> && !std::same_as<T, bool> && sizeof(T) <= 8)
struct LanesOf<T, count> {
  using Type = T __attribute__((vector_size(count * sizeof(T))));
};
#endif
template <class T, std::size_t count>
using Lanes = typename LanesOf<T, count>::Type;

// Enabled by DIST_DISPATCH_VECTORS. Not for nvcc, whose front end rejects the attribute on templates.
#if defined(DIST_DISPATCH_VECTORS) && defined(__x86_64__) && !defined(__CUDACC__)
#define DIST_DISPATCHES_VECTORS 1
#ifdef __clang__
#define DIST_AVX512 "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma"
#else
#define DIST_AVX512 "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,prefer-vector-width=512"
#endif

template <class Body>
[[gnu::target(DIST_AVX512)]] inline void with_avx512(Body& body) {
  body.template operator()<64>();
}
template <class Body>
[[gnu::target("avx2,fma")]] inline void with_avx2(Body& body) {
  body.template operator()<32>();
}
#undef DIST_AVX512
#endif

/// Calls `body.template operator()<bytes>()`, compiled for the widest vectors of the translation unit's target. With
/// DIST_DISPATCH_VECTORS, chooses the widest vectors of the processor at run time, at the cost of testing one flag per
/// call. DIST_MAX_ISA limits them. Throws InvalidArgument if the target's are wider. Only inlined code is compiled for
/// these vectors, so write the body as `[&]<std::size_t Bytes>() DIST_INLINE_LAMBDA { ... }`.
template <class Body>
DIST_ALWAYS_INLINE void with_widest_vectors(Body&& body) {
  const std::size_t most = max_vector_bytes();
  if (vector_bytes > most) refuse_vectors(vector_bytes);
#ifdef DIST_DISPATCHES_VECTORS
  if constexpr (vector_bytes < 64) {
    if (most >= 64 && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl"))
      return with_avx512(body);
    if constexpr (vector_bytes < 32) {
      if (most >= 32 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return with_avx2(body);
    }
  }
#endif
  body.template operator()<vector_bytes>();
}

}  // namespace dist::detail

#ifndef DIST_COMPILED
#include <dist/core/vectors.ipp>
#endif
