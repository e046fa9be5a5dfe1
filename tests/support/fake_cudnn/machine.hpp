/// cuBLAS and cuDNN without a GPU: products and convolutions are loops on streams of the fake GPUs (support/fake_cuda).
/// Calls with undefined behaviour, and calls that the fakes do not support, terminate the process.
/// `fake_cuda::fail_call("cublasSgemm", …)` injects failures.
#pragma once

#include <cstddef>

namespace fake_cudnn {

/// Numbers of existing handles.
[[nodiscard]] std::size_t live_blas_handles();
[[nodiscard]] std::size_t live_dnn_handles();
/// Number of products and convolutions with TF32 factors, which the fakes round.
[[nodiscard]] std::size_t short_products();
/// Number of existing cuDNN descriptors.
[[nodiscard]] std::size_t live_descriptors();

}  // namespace fake_cudnn
