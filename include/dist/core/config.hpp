/// Properties of the compiler. Does not depend on optional packages.
#pragma once

#if __cplusplus < 202002L
#error "dist needs C++20: compile with -std=c++20, or in CMake link dist::dist, which adds this option"
#include <cpp20>  // does not exist; only a missing header ends a compilation
#endif

/// Major version of the library.
#define DIST_VERSION_MAJOR 0
/// Minor version of the library.
#define DIST_VERSION_MINOR 3
/// Patch version of the library.
#define DIST_VERSION_PATCH 0

/// Marks a function that both host loops and device kernels may call.
#ifdef __CUDACC__
#define DIST_HD __host__ __device__
#else
#define DIST_HD
#endif

/// Marks a namespace-scope object that kernels also use, such as `dist::sum`: nvcc's host objects do not exist on a
/// GPU.
#ifdef __CUDA_ARCH__
#define DIST_HD_OBJECT __device__ constexpr
#else
#define DIST_HD_OBJECT inline constexpr
#endif

/// Promises that, in this scope, the memory is written only through the marked pointer.
#define DIST_RESTRICT __restrict__

/// Marks the few functions that must be inlined into the caller's loop.
#define DIST_ALWAYS_INLINE inline __attribute__((always_inline))
/// DIST_ALWAYS_INLINE for a lambda: `[&](auto value) DIST_INLINE_LAMBDA { ... }`.
#define DIST_INLINE_LAMBDA __attribute__((always_inline))

/// Marks functions that are declared in `x.hpp` and defined in `x.ipp`. By default, `x.hpp` includes `x.ipp` and they
/// are inline. If the program defines DIST_COMPILED, `<dist/compiled*.ipp>` compiles them once. Either way they are not
/// inlined, to limit the size of programs.
#ifdef DIST_COMPILED
#define DIST_INLINE
#define DIST_INLINE_DEFAULT
#else
#if defined(__clang__) || defined(__CUDACC__)
#define DIST_INLINE inline __attribute__((noinline))
#else
#define DIST_INLINE inline __attribute__((noinline, noclone))
#endif
/// DIST_INLINE for functions that are `= default`: g++ warns if they have its attribute.
#define DIST_INLINE_DEFAULT inline
#endif
/// DIST_INLINE for functions of errors and slow paths, which the compiler optimises for size. Call them only under a
/// condition: GCC also treats unconditional callers as cold, transitively, up to `main`.
#define DIST_COLD [[gnu::cold]] DIST_INLINE

/// Promises the vectoriser that the iterations of the next loop are independent. Empty for clang, which checks for
/// overlap at run time, and would warn about loops that it cannot vectorise.
#if defined(__GNUC__) && !defined(__clang__)
#define DIST_INDEPENDENT_LOOP _Pragma("GCC ivdep")
#else
#define DIST_INDEPENDENT_LOOP
#endif

namespace dist::detail {
/// Evaluates a concept so that `static_assert(satisfied<Concept<T>>, "message")` prints only the message. Compilers
/// explain bare concepts at length.
template <bool condition>
inline constexpr bool satisfied = condition;

/// The return value of functions that have rejected their arguments with a static_assert, to avoid follow-up errors.
/// Never defined.
template <class T>
T refused();

/// Base class of templates that reject their arguments with a static_assert. Accepts all constructor arguments.
struct Refused {
  explicit Refused(auto&&...) {}
};
}  // namespace dist::detail
