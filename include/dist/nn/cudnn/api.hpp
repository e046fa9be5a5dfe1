/// The door to cuBLAS, and what its errors become. The only header that includes it.
#pragma once

#include <cublas_v2.h>

#include <string_view>

#include <dist/core/error.hpp>
#include <dist/core/text.hpp>
#include <dist/device/cuda/api.hpp>

namespace dist::nn {

/// A call of cuBLAS that failed.
class CuBlasError : public Error {
 public:
  CuBlasError(cublasStatus_t status, std::string_view call, std::string_view file, int line)
      : Error(text("cuBLAS refuses '", call, "'"),
              text(cublasGetStatusName(status), ": ", cublasGetStatusString(status), ", in ", file, ":", line),
              status == CUBLAS_STATUS_ALLOC_FAILED
                  ? cuda::use_less_memory
                  : "Check that this cuBLAS is made for this GPU and driver, or use a back end on the host"),
        status_(status) {}

  [[nodiscard]] cublasStatus_t status() const noexcept { return status_; }

 private:
  cublasStatus_t status_;
};

namespace cudnn {

/// Throws a CuBlasError unless `status` is success.
inline void check(cublasStatus_t status, std::string_view call, const char* file = __builtin_FILE(),
                  int line = __builtin_LINE()) {
  if (status != CUBLAS_STATUS_SUCCESS) [[unlikely]]
    throw CuBlasError(status, call, file, line);
}

}  // namespace cudnn
}  // namespace dist::nn

/// Throws where the call of cuBLAS fails.
#define DIST_CUBLAS_CHECK(call) ::dist::nn::cudnn::check(call, #call)
