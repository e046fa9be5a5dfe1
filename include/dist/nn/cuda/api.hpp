/// Errors of cuBLAS and cuDNN. The only header that includes these libraries.
#pragma once

#include <cublas_v2.h>
#include <cudnn.h>

#include <string>
#include <string_view>

#include <dist/core/error.hpp>
#include <dist/core/text.hpp>
#include <dist/device/cuda/api.hpp>

namespace dist::nn {

namespace cuda {
/// The suggestion of errors of cuBLAS and cuDNN.
inline constexpr std::string_view check_library =
    "Check that this library supports this GPU and driver, or use a back end on the host";

/// " on GPU 1" for the thread's current device.
[[nodiscard]] inline std::string on_chosen_gpu() {
  int device = 0;
  const cudaError_t answer = cudaGetDevice(&device);
  dist::cuda::forget(answer);
  return answer == cudaSuccess ? concat(" on GPU ", device) : std::string{};
}
}  // namespace cuda

/// Thrown if a call of cuBLAS fails.
class CuBlasError : public Error {
 public:
  /// The error of `call` at this place in the source.
  CuBlasError(cublasStatus_t status, std::string_view call, std::string_view file, int line)
      : Error(concat("cuBLAS refuses '", call, "'", cuda::on_chosen_gpu()),
              concat(cublasGetStatusName(status), ": ", cublasGetStatusString(status), ", in ", file, ":", line),
              status == CUBLAS_STATUS_ALLOC_FAILED ? dist::cuda::use_less_memory : cuda::check_library),
        status_(status) {}

  /// The status that cuBLAS returned.
  [[nodiscard]] cublasStatus_t status() const noexcept { return status_; }

 private:
  cublasStatus_t status_;
};

/// Thrown if a call of cuDNN fails.
class CuDnnError : public Error {
 public:
  /// The error of `call` at this place in the source.
  CuDnnError(cudnnStatus_t status, std::string_view call, std::string_view file, int line)
      : Error(concat("cuDNN refuses '", call, "'", cuda::on_chosen_gpu()),
              concat(cudnnGetErrorString(status), ", in ", file, ":", line),
              status == CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED ||
                      status == CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED
                  ? dist::cuda::use_less_memory
                  : cuda::check_library),
        status_(status) {}

  /// The status that cuDNN returned.
  [[nodiscard]] cudnnStatus_t status() const noexcept { return status_; }

 private:
  cudnnStatus_t status_;
};

namespace cuda {

/// Throws CuBlasError or CuDnnError unless `status` is success.
inline void check(cublasStatus_t status, std::string_view call, const char* file = __builtin_FILE(),
                  int line = __builtin_LINE()) {
  if (status != CUBLAS_STATUS_SUCCESS) [[unlikely]]
    throw CuBlasError(status, call, file, line);
}
inline void check(cudnnStatus_t status, std::string_view call, const char* file = __builtin_FILE(),
                  int line = __builtin_LINE()) {
  if (status != CUDNN_STATUS_SUCCESS) [[unlikely]]
    throw CuDnnError(status, call, file, line);
}

}  // namespace cuda
}  // namespace dist::nn

/// Throws CuBlasError or CuDnnError if the call fails.
#define DIST_CUBLAS_CHECK(call) ::dist::nn::cuda::check(call, #call)
/// Throws CuDnnError if the call fails.
#define DIST_CUDNN_CHECK(call) ::dist::nn::cuda::check(call, #call)
