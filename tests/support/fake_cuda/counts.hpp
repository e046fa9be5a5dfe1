#pragma once

#include "machine.hpp"

namespace fake_cuda {

[[nodiscard]] Counts& counter() noexcept;

}  // namespace fake_cuda
