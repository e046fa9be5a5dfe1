/// Compiler facts that every other header may rely on. Nothing here depends on an optional package.
#pragma once

#if __cplusplus < 202002L
#error "dist needs C++20: compile with -std=c++20, or in CMake link dist::dist, which asks for it"
#include <cpp20>  // there is none, and only a missing header ends a compilation
#endif

#define DIST_VERSION_MAJOR 0
#define DIST_VERSION_MINOR 3
#define DIST_VERSION_PATCH 0

/// Marks a function that a host loop and a device kernel may both call.
#ifdef __CUDACC__
#define DIST_HD __host__ __device__
#else
#define DIST_HD
#endif

/// Marks an object of a namespace that kernels name, too, such as `dist::sum`: nvcc's host objects do not exist on a GPU.
#ifdef __CUDA_ARCH__
#define DIST_HD_OBJECT __device__ constexpr
#else
#define DIST_HD_OBJECT inline constexpr
#endif

/// A promise that the marked pointer is the only one through which its memory is written in this scope.
#define DIST_RESTRICT __restrict__

/// For the few functions whose whole point is to vanish into the caller's loop.
#define DIST_ALWAYS_INLINE inline __attribute__((always_inline))
/// The same for a lambda: `[&](auto value) DIST_INLINE_LAMBDA { ... }`.
#define DIST_INLINE_LAMBDA __attribute__((always_inline))

/// Marks the functions that `x.hpp` declares and `x.ipp` beside it defines: inline, because `x.hpp` includes `x.ipp`,
/// unless the program compiles <dist/compiled.ipp> once and says DIST_COMPILED everywhere. What needs a package is in
/// <dist/compiled_mpi.ipp> and <dist/compiled_hosting.ipp>, or <dist/compiled_pjrt.ipp>, and is marked with the pairs below.
#ifdef DIST_COMPILED
#define DIST_INLINE
#else
#define DIST_INLINE inline
#endif
#ifdef DIST_COMPILED_MPI
#define DIST_INLINE_MPI
#else
#define DIST_INLINE_MPI inline
#endif
#ifdef DIST_COMPILED_PJRT
#define DIST_INLINE_PJRT
#else
#define DIST_INLINE_PJRT inline
#endif

/// Tells the vectoriser that the iterations of the following loop are independent. clang gets no such promise: it
/// checks for overlap at run time by itself, and would warn about every loop that it cannot vectorise.
#if defined(__GNUC__) && !defined(__clang__)
#define DIST_INDEPENDENT_LOOP _Pragma("GCC ivdep")
#else
#define DIST_INDEPENDENT_LOOP
#endif

namespace dist::detail {
/// `static_assert(satisfied<Concept<T>>, "sentence")` says the sentence alone. Of a concept itself compilers tell line by
/// line why it is not satisfied, behind which the sentence is lost.
template <bool condition>
inline constexpr bool satisfied = condition;

/// What a function that has refused its arguments returns, so that its result is no further error: never defined, and
/// never called in a program that compiles.
template <class T>
T refused();

/// The base of a class template for arguments that it refuses by a static_assert: making an object is no further error.
struct Refused {
  explicit Refused(auto&&...) {}
};
}  // namespace dist::detail
