/// cuBLAS and cuDNN without a GPU: products and convolutions are loops, put on the streams of the fake GPUs
/// (support/fake_cuda), and calls that the libraries would answer with undefined behaviour are refused, as are those that
/// the fakes cannot compute. `fake_cuda::fail_call("cublasSgemm", …)` injects failures.
#pragma once

#include <cstddef>

namespace fake_cudnn {

/// Handles that were made and not destroyed.
[[nodiscard]] std::size_t live_blas_handles();
[[nodiscard]] std::size_t live_dnn_handles();
/// Products and convolutions that were put with factors of TF32: the fakes round these.
[[nodiscard]] std::size_t short_products();
/// Descriptors of cuDNN.
[[nodiscard]] std::size_t live_descriptors();

}  // namespace fake_cudnn
