#pragma once

#include <dist/core/error.hpp>

/// Throws InvalidArgument, because no PJRT plugin was found at configure time.
void with_tpu(const auto& /*use*/) {
  throw dist::InvalidArgument("This program does not use TPUs", "CMake found no PJRT plugin",
                              "Install PyPI's xla-cpu-pjrt and build again, or select another strategy");
}
