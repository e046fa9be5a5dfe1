#pragma once

#include <cstddef>
#include <cstdlib>

/// True if DIST_EXAMPLE_QUICK=1: tests run the examples on less data.
inline bool quick() {
  const char* value = std::getenv("DIST_EXAMPLE_QUICK");
  return value != nullptr && *value == '1';
}
