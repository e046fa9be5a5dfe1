/// cuBLAS without a GPU: products are loops, put on the streams of the fake GPUs (support/fake_cuda), and calls that cuBLAS
/// would answer with undefined behaviour are refused. `fake_cuda::fail_call("cublasSgemm", …)` injects failures.
#pragma once

#include <cstddef>

namespace fake_cudnn {

/// Handles that were made and not destroyed.
[[nodiscard]] std::size_t live_handles();

}  // namespace fake_cudnn
