#pragma once

#include <cstdio>
#include <cstdlib>

/// Every example ends in checks of what it claims, so that a test can run it.
inline void check(bool holds, const char* claim) {
  if (holds) return;
  std::fprintf(stderr, "check failed: %s\n", claim);
  std::exit(1);
}
