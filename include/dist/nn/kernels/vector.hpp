#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include <dist/core/config.hpp>

/// Vectors by the compiler's extension, without intrinsics. They must not be passed to or returned from functions,
/// because their width would become part of an ABI: all functions here are inlined into a body that core/vectors.hpp
/// compiles for the processor, and take vectors by reference.
namespace dist::nn::kernels {

/// The vector of `Bytes` bytes, aligned and unaligned.
template <class T, std::size_t Bytes>
struct VectorOf {
  using Lane = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;
  typedef T Type __attribute__((vector_size(Bytes)));
  typedef T Unaligned __attribute__((vector_size(Bytes), aligned(alignof(T)), may_alias));
  typedef Lane Indices __attribute__((vector_size(Bytes)));
  static constexpr std::size_t lanes = Bytes / sizeof(T);
};

template <class T, std::size_t Bytes>
using Vector = typename VectorOf<T, Bytes>::Type;

/// Registers of processors with vectors of `Bytes` bytes.
template <std::size_t Bytes>
#ifdef __aarch64__
inline constexpr std::size_t vector_registers = 32;
#else
inline constexpr std::size_t vector_registers = Bytes == 64 ? 32 : 16;
#endif

/// Returns the bytes of the widest vector, at most `Bytes`, of at most `elements` elements, or of one.
template <class T, std::size_t Bytes>
[[nodiscard]] constexpr std::size_t vector_bytes_within(std::size_t elements) noexcept {
  std::size_t bytes = Bytes;
  while (bytes > sizeof(T) && bytes > elements * sizeof(T)) bytes /= 2;
  return bytes;
}

template <std::size_t Bytes, class T>
DIST_ALWAYS_INLINE void load(Vector<T, Bytes>& to, const T* from) noexcept {
  to = *reinterpret_cast<const typename VectorOf<T, Bytes>::Unaligned*>(from);
}

template <std::size_t Bytes, class T>
DIST_ALWAYS_INLINE void store(const Vector<T, Bytes>& from, T* to) noexcept {
  *reinterpret_cast<typename VectorOf<T, Bytes>::Unaligned*>(to) = from;
}

/// Calls f.template operator()<0>(), …<1>(), up to Count - 1, because register indices must be constants.
template <std::size_t Count, class F>
DIST_ALWAYS_INLINE void unrolled(F&& f) {
  [&]<std::size_t... Index>(std::index_sequence<Index...>) DIST_INLINE_LAMBDA { (f.template operator()<Index>(), ...); }
  (std::make_index_sequence<Count>{});
}

/// Calls f.template operator()<Size>() with the first of `Sizes` within `count`, and returns it; 0 if none is.
template <std::size_t... Sizes, class F>
DIST_ALWAYS_INLINE std::size_t with_first_within(std::size_t count, F&& f) {
  std::size_t taken = 0;
  (void)((count >= Sizes && (f.template operator()<Sizes>(), taken = Sizes) > 0) || ...);
  return taken;
}

/// Sets lane l of `to` to lane `Index`[l] of a followed by b.
template <class T, std::size_t Bytes, std::size_t... Index>
DIST_ALWAYS_INLINE void shuffle(const Vector<T, Bytes>& a, const Vector<T, Bytes>& b, Vector<T, Bytes>& to,
                                std::index_sequence<Index...>) noexcept {
#ifdef __clang__
  to = __builtin_shufflevector(a, b, static_cast<int>(Index)...);
#else
  to = __builtin_shuffle(
      a, b, typename VectorOf<T, Bytes>::Indices{static_cast<typename VectorOf<T, Bytes>::Lane>(Index)...});
#endif
}

/// Exchanges odd blocks of `Block` lanes of a with even ones of b: a 2 x 2 transposition of blocks.
template <std::size_t Block, class T, std::size_t Bytes>
DIST_ALWAYS_INLINE void exchange_blocks(Vector<T, Bytes>& a, Vector<T, Bytes>& b) noexcept {
  constexpr std::size_t lanes = Bytes / sizeof(T);
  const Vector<T, Bytes> left = a;
  const Vector<T, Bytes> right = b;
  [&]<std::size_t... Lane>(std::index_sequence<Lane...>) DIST_INLINE_LAMBDA {
    shuffle<T, Bytes>(left, right, a, std::index_sequence<((Lane & Block) == 0 ? Lane : Lane - Block + lanes)...>{});
    shuffle<T, Bytes>(left, right, b, std::index_sequence<((Lane & Block) == 0 ? Lane + Block : Lane + lanes)...>{});
  }
  (std::make_index_sequence<lanes>{});
}

/// Transposes the square matrix of these rows.
template <class T, std::size_t Bytes, std::size_t Block = Bytes / sizeof(T) / 2>
DIST_ALWAYS_INLINE void transpose(Vector<T, Bytes> (&rows)[Bytes / sizeof(T)]) noexcept {
  if constexpr (Block > 0) {
    unrolled<Bytes / sizeof(T)>([&]<std::size_t Row>() DIST_INLINE_LAMBDA {
      if constexpr ((Row & Block) == 0) exchange_blocks<Block, T, Bytes>(rows[Row], rows[Row + Block]);
    });
    transpose<T, Bytes, Block / 2>(rows);
  }
}

}  // namespace dist::nn::kernels
