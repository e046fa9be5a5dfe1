/// Checks for our own mistakes, not the user's: they state what the code around them relies on, and stop the program
/// with the place and the condition when it does not hold.
///
/// DIST_CONTRACT_LEVEL chooses the cost: 0 none, 1 (default) checks outside inner loops, 2 also index checks in them, and
/// the arguments of kernels.
#pragma once

#include <dist/core/config.hpp>

#ifndef DIST_CONTRACT_LEVEL
#define DIST_CONTRACT_LEVEL 1
#endif

namespace dist::detail {

[[noreturn]] void contract_failed(const char* condition, const char* file, int line);

}  // namespace dist::detail

#ifdef __CUDA_ARCH__  // a kernel has nobody to tell
#define DIST_CONTRACT_CHECK(condition) static_cast<void>(0)
#else
#define DIST_CONTRACT_CHECK(condition) \
  ((condition) ? static_cast<void>(0) : ::dist::detail::contract_failed(#condition, __FILE__, __LINE__))
#endif

#if DIST_CONTRACT_LEVEL >= 1
#define DIST_EXPECT(condition) DIST_CONTRACT_CHECK(condition)
#else
#define DIST_EXPECT(condition) static_cast<void>(0)
#endif

#if DIST_CONTRACT_LEVEL >= 2
#define DIST_EXPECT_INNER(condition) DIST_CONTRACT_CHECK(condition)
#else
#define DIST_EXPECT_INNER(condition) static_cast<void>(0)
#endif

#ifndef DIST_COMPILED
#include <dist/core/contract.ipp>
#endif
