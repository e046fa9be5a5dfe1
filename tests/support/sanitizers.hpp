/// The sanitizer of the compilation, for g++ and clang++: DIST_TEST_ADDRESS_SANITIZER, DIST_TEST_THREAD_SANITIZER, and
/// DIST_TEST_SANITIZER for either.
#pragma once

#if defined(__SANITIZE_ADDRESS__)
#define DIST_TEST_ADDRESS_SANITIZER 1
#elif defined(__SANITIZE_THREAD__)
#define DIST_TEST_THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define DIST_TEST_ADDRESS_SANITIZER 1
#elif __has_feature(thread_sanitizer)
#define DIST_TEST_THREAD_SANITIZER 1
#endif
#endif

#if defined(DIST_TEST_ADDRESS_SANITIZER) || defined(DIST_TEST_THREAD_SANITIZER)
#define DIST_TEST_SANITIZER 1
#endif

namespace support {

/// True if suites test every element type. Not under the thread sanitizer, to compile faster: accesses do not depend on
/// the type. Tests whose code does not depend on the type, or is covered by another test, define DIST_TEST_FEW_TYPES
/// first.
#if defined(DIST_TEST_THREAD_SANITIZER) || defined(DIST_TEST_FEW_TYPES)
inline constexpr bool every_type = false;
#else
inline constexpr bool every_type = true;
#endif

}  // namespace support
