/// Assertions for bugs of the library, not of the user. They stop the program and print the location and the condition.
///
/// DIST_CONTRACT_LEVEL chooses the cost: 0 disables the checks, 1 (default) enables checks outside inner loops, 2 also
/// enables index checks in inner loops and checks of kernel arguments.
#pragma once

#include <cstdio>
#include <cstdlib>

#include <dist/core/config.hpp>

/// Cost of the checks: 0, 1 or 2, see the file. Set it for the whole program, such as by `-DDIST_CONTRACT_LEVEL=2`.
#ifndef DIST_CONTRACT_LEVEL
#define DIST_CONTRACT_LEVEL 1
#endif

namespace dist::detail {

[[noreturn]] inline void contract_failed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "dist: broken contract at %s:%d: %s\n", file, line, condition);
  std::abort();
}

}  // namespace dist::detail

/// Stops the program if `condition` is false. Does nothing in device code.
#ifdef __CUDA_ARCH__  // a kernel cannot report errors
#define DIST_CONTRACT_CHECK(condition) static_cast<void>(0)
#else
#define DIST_CONTRACT_CHECK(condition) \
  ((condition) ? static_cast<void>(0) : ::dist::detail::contract_failed(#condition, __FILE__, __LINE__))
#endif

/// Checks `condition` outside inner loops, from contract level 1 on.
#if DIST_CONTRACT_LEVEL >= 1
#define DIST_EXPECT(condition) DIST_CONTRACT_CHECK(condition)
#else
#define DIST_EXPECT(condition) static_cast<void>(0)
#endif

/// Checks `condition` in inner loops, from contract level 2 on.
#if DIST_CONTRACT_LEVEL >= 2
#define DIST_EXPECT_INNER(condition) DIST_CONTRACT_CHECK(condition)
#else
#define DIST_EXPECT_INNER(condition) static_cast<void>(0)
#endif
