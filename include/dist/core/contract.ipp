#pragma once

#include <cstdio>
#include <cstdlib>

#include <dist/core/contract.hpp>

namespace dist::detail {

DIST_INLINE void contract_failed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "dist: broken contract at %s:%d: %s\n", file, line, condition);
  std::abort();
}

}  // namespace dist::detail
