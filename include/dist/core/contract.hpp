/// Checks for our own mistakes, not the user's: they state what the code around them relies on, and stop the program
/// with the place and the condition when it does not hold.
///
/// DIST_CONTRACT_LEVEL chooses the cost: 0 none, 1 (default) checks outside inner loops, 2 also index checks in them.
#pragma once

#include <cstdio>
#include <cstdlib>

#ifndef DIST_CONTRACT_LEVEL
#define DIST_CONTRACT_LEVEL 1
#endif

namespace dist::detail {

[[noreturn]] inline void contract_failed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "dist: broken contract at %s:%d: %s\n", file, line, condition);
  std::abort();
}

}  // namespace dist::detail

#define DIST_CONTRACT_CHECK(condition) \
  ((condition) ? static_cast<void>(0) : ::dist::detail::contract_failed(#condition, __FILE__, __LINE__))

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
