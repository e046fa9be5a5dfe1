#pragma once

#include <cstddef>
#include <cstdlib>

/// Tests run the examples on less data: DIST_EXAMPLE_QUICK=1.
inline bool quick() {
  const char* value = std::getenv("DIST_EXAMPLE_QUICK");
  return value != nullptr && *value == '1';
}
