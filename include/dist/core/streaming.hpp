/// Prefetches and non-temporal stores for loops over large memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include <dist/core/algorithms.hpp>
#include <dist/core/config.hpp>

namespace dist::detail {

/// True if operands of this many elements do not fit into a cache. Smaller ones are prefetched one block ahead; larger
/// ones rely on the hardware prefetcher, and copies for other threads bypass the caches.
template <class T>
[[nodiscard]] constexpr bool exceeds_caches(std::size_t elements) {
  return elements >= (std::size_t{1} << 20) / sizeof(T);
}

/// Prefetches the memory from `first` to `last`, one cache line at a time. A hint only: the range may extend past valid
/// memory.
DIST_ALWAYS_INLINE void prefetch(const void* first, const void* last) {
  for (auto line = reinterpret_cast<std::uintptr_t>(first); line < reinterpret_cast<std::uintptr_t>(last); line += 64)
    __builtin_prefetch(reinterpret_cast<const void*>(line));
}

/// Copies with non-temporal stores: for memory that another processor reads much later. Visible to other threads after
/// `finish_streams` and a synchronisation.
template <class T>
DIST_ALWAYS_INLINE void stream_copy(const T* from, std::size_t count, T* to) {
  static_assert(std::is_trivially_copyable_v<T> && 16 % sizeof(T) == 0);
#if defined(__SSE2__) && !defined(__CUDACC__)
  using Vector = float __attribute__((vector_size(16), may_alias));
  const std::size_t misaligned = reinterpret_cast<std::uintptr_t>(to) % sizeof(Vector);
  if (misaligned % sizeof(T) == 0) {
    const std::size_t before = std::min(count, misaligned == 0 ? 0 : (sizeof(Vector) - misaligned) / sizeof(T));
    std::copy_n(from, before, to);
    const std::size_t vectors = (count - before) * sizeof(T) / sizeof(Vector);
    const auto* const source = reinterpret_cast<const char*>(from + before);
    auto* const target = reinterpret_cast<Vector*>(to + before);
    for (std::size_t i = 0; i < vectors; ++i) {
      Vector vector;
      __builtin_memcpy(&vector, source + i * sizeof(Vector), sizeof(Vector));  // one load of any alignment
#ifdef __clang__
      __builtin_nontemporal_store(vector, target + i);
#else
      __builtin_ia32_movntps(reinterpret_cast<float*>(target + i), vector);
#endif
    }
    const std::size_t done = before + vectors * sizeof(Vector) / sizeof(T);
    std::copy_n(from + done, count - done, to + done);
    return;
  }
#endif
  std::copy_n(from, count, to);
}
/// Orders the calling thread's non-temporal stores before its later stores.
DIST_ALWAYS_INLINE void finish_streams() {
#if defined(__SSE2__) && !defined(__CUDACC__)
  __builtin_ia32_sfence();
#endif
}

/// Copies `mine` to each member that does not share this memory. `copy_of(rank)` is the destination for member `rank`.
template <class T, class CopyOf>
DIST_ALWAYS_INLINE void copy_to_others(std::size_t members, CopyOf&& copy_of, std::span<const T> mine,
                                       bool past_caches) {
  for (std::size_t rank = 0; rank < members; ++rank) {
    T* const theirs = copy_of(rank);
    if (theirs == mine.data()) continue;
    if (past_caches) {
      stream_copy(mine.data(), mine.size(), theirs);
    } else {
      std::copy_n(mine.data(), mine.size(), theirs);
    }
  }
}

}  // namespace dist::detail
