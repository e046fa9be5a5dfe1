#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <dist/core/config.hpp>

namespace dist::detail {

/// Bytes of the widest vector registers that this translation unit is compiled for.
#if defined(__AVX512F__)
inline constexpr std::size_t vector_bytes = 64;
#elif defined(__AVX2__)
inline constexpr std::size_t vector_bytes = 32;
#else
inline constexpr std::size_t vector_bytes = 16;
#endif

// Not for nvcc, whose front end does not take the attribute on templates.
#if defined(__x86_64__) && !defined(__CUDACC__)
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

/// Calls `body.template operator()<bytes>()`, compiled for the widest vectors that the processor has, of so many bytes:
/// by the target flags of the translation unit where these are wide enough, else chosen at run time. What the body does
/// is compiled for them as far as it is inlined, so write it as
/// `[&]<std::size_t Bytes>() DIST_INLINE_LAMBDA { ... }`. One test of a flag per call.
template <class Body>
DIST_ALWAYS_INLINE void with_widest_vectors(Body&& body) {
#ifdef DIST_DISPATCHES_VECTORS
  if constexpr (vector_bytes < 64) {
    if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
      return with_avx512(body);
    if constexpr (vector_bytes < 32) {
      if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return with_avx2(body);
    }
  }
#endif
  body.template operator()<vector_bytes>();
}

/// Asks for the memory from `first` to `last` to be brought near, line by line, while other work goes on. Advice only:
/// the range may reach beyond what there is.
DIST_ALWAYS_INLINE void prefetch(const void* first, const void* last) {
  for (auto line = reinterpret_cast<std::uintptr_t>(first); line < reinterpret_cast<std::uintptr_t>(last); line += 64)
    __builtin_prefetch(reinterpret_cast<const void*>(line));
}

/// Copies past the caches: for memory that another processor will read, much later, where reading what is overwritten
/// would cost as much as the copy. Others see the copy after `finish_streams` and a synchronisation.
template <class T>
DIST_ALWAYS_INLINE void stream_copy(const T* from, std::size_t count, T* to) {
  static_assert(std::is_trivially_copyable_v<T>);
#if defined(__SSE2__) && !defined(__CUDACC__)
  using Vector = float __attribute__((vector_size(16), may_alias));
  using Unaligned = float __attribute__((vector_size(16), may_alias, aligned(1)));
  const std::size_t misaligned = reinterpret_cast<std::uintptr_t>(to) % sizeof(Vector);
  if (misaligned % sizeof(T) == 0) {
    const std::size_t before = std::min(count, misaligned == 0 ? 0 : (sizeof(Vector) - misaligned) / sizeof(T));
    std::copy_n(from, before, to);
    const std::size_t vectors = (count - before) * sizeof(T) / sizeof(Vector);
    const auto* const source = reinterpret_cast<const Unaligned*>(from + before);
    auto* const target = reinterpret_cast<Vector*>(to + before);
    for (std::size_t i = 0; i < vectors; ++i) {
#ifdef __clang__
      __builtin_nontemporal_store(Vector(source[i]), target + i);
#else
      __builtin_ia32_movntps(reinterpret_cast<float*>(target + i), source[i]);
#endif
    }
    const std::size_t done = before + vectors * sizeof(Vector) / sizeof(T);
    std::copy_n(from + done, count - done, to + done);
    return;
  }
#endif
  std::copy_n(from, count, to);
}
/// Ends the calling thread's copies past the caches: its next announcement comes after them.
DIST_ALWAYS_INLINE void finish_streams() {
#if defined(__SSE2__) && !defined(__CUDACC__)
  __builtin_ia32_sfence();
#endif
}

}  // namespace dist::detail
