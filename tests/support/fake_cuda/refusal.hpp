#pragma once

#include <string_view>

namespace fake_cuda {

/// Terminates the process with "fake CUDA: ..." on stderr, because the program violates a rule of CUDA.
[[noreturn]] void refuse(std::string_view sentence) noexcept;

}  // namespace fake_cuda
