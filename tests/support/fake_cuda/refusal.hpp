#pragma once

#include <string_view>

namespace fake_cuda {

/// Ends the process after the sentence "fake CUDA: ..." on stderr: the program does what no GPU program may do.
[[noreturn]] void refuse(std::string_view sentence) noexcept;

}  // namespace fake_cuda
