/// Assertions for bugs of the library, not of the user. They stop the program and print the location and the condition.
///
/// DIST_CONTRACT_LEVEL chooses the cost: 0 disables the checks, 1 (default) enables checks outside inner loops, 2 also
/// enables index checks in inner loops and checks of kernel arguments.
#pragma once

#include <cstdio>
#include <cstdlib>

#include <dist/core/config.hpp>

#ifndef DIST_CONTRACT_LEVEL
#define DIST_CONTRACT_LEVEL 1
#endif

namespace dist::detail {

[[noreturn]] inline void contract_failed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "dist: broken contract at %s:%d: %s\n", file, line, condition);
  std::abort();
}

}  // namespace dist::detail

#ifdef __CUDA_ARCH__  // a kernel cannot report errors
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
