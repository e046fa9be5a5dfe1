#pragma once

namespace testing {

/// The exit status of skipped tests for ctest (property SKIP_RETURN_CODE). doctest never returns it.
inline constexpr int skipped = 77;

}  // namespace testing
