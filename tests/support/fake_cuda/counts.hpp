#pragma once

#include "machine.hpp"

namespace fake_cuda {

/// What is counted as it happens.
[[nodiscard]] Counts& counter() noexcept;

}  // namespace fake_cuda
