#pragma once

namespace testing {

/// The exit status that tells ctest that a test was skipped (its property SKIP_RETURN_CODE). doctest never returns it.
inline constexpr int skipped = 77;

}  // namespace testing
