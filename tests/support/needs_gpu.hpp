/// For test programs that require a GPU.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include <dist/device/cuda/device.cuh>
#include <support/skipped.hpp>

namespace testing {

/// As a constant at namespace scope, exits the program before any test without a GPU: as skipped, or as failed if
/// DIST_REQUIRE_GPU=1.
struct NeedsGpu {
  NeedsGpu() {
    try {
      static_cast<void>(dist::Cuda::placement(1));
    } catch (const dist::NoGpu& none) {
      const char* const required = std::getenv("DIST_REQUIRE_GPU");
      const bool failed = required != nullptr && std::string_view{required} == "1";
      std::printf("%s: %s\n", failed ? "failed" : "skipped", none.what());
      std::fflush(stdout);
      std::_Exit(failed ? EXIT_FAILURE : skipped);
    }
  }
};

}  // namespace testing
