#include <dist/core/config.hpp>

#include <doctest/doctest.h>

#include <cstddef>

namespace {

DIST_HD constexpr int twice(int value) { return 2 * value; }

DIST_ALWAYS_INLINE int thrice(int value) { return 3 * value; }

void add(float* DIST_RESTRICT target, const float* DIST_RESTRICT source, std::size_t count) {
  DIST_INDEPENDENT_LOOP
  for (std::size_t i = 0; i < count; ++i) target[i] += source[i];
}

}  // namespace

TEST_CASE("the version is a number that the preprocessor can compare") {
#if DIST_VERSION_MAJOR * 10000 + DIST_VERSION_MINOR * 100 + DIST_VERSION_PATCH > 0
  const bool comparable = true;
#else
  const bool comparable = false;
#endif
  CHECK(comparable);
}

TEST_CASE("marked functions are usable, even at compile time") {
  static_assert(twice(21) == 42);
  CHECK(thrice(14) == 42);
}

TEST_CASE("a marked loop computes correct results") {
  float target[19];
  float source[19];
  for (std::size_t i = 0; i < 19; ++i) {
    target[i] = static_cast<float>(i);
    source[i] = static_cast<float>(2 * i);
  }
  add(target, source, 19);
  for (std::size_t i = 0; i < 19; ++i) CHECK(target[i] == static_cast<float>(3 * i));
}
