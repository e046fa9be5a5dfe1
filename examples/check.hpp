#pragma once

#include <cstdio>
#include <cstdlib>

/// Exits with an error if `holds` is false.
inline void check(bool holds, const char* claim) {
  if (holds) return;
  std::fprintf(stderr, "check failed: %s\n", claim);
  std::exit(1);
}
