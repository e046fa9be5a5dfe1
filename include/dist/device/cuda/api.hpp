/// The CUDA runtime, and what its errors become. The one header that includes it.
#pragma once

#include <cuda_runtime_api.h>

#include <string_view>

#include <dist/core/error.hpp>
#include <dist/core/text.hpp>

namespace dist {

/// A call of the CUDA runtime that failed, maybe because of work that was put on a GPU before.
class CudaError : public Error {
 public:
  CudaError(cudaError_t code, std::string_view call, std::string_view file, int line)
      : Error(text("CUDA refuses '", call, "'"),
              text(cudaGetErrorName(code), ": ", cudaGetErrorString(code), ", in ", file, ":", line),
              is_fatal(code) ? "Start the process again: it has lost its GPUs. compute-sanitizer finds the kernel"
                             : "Look at devices, driver and memory with nvidia-smi"),
        code_(code) {}

  [[nodiscard]] cudaError_t code() const noexcept { return code_; }
  /// Every later call of this process fails as well: a kernel went wrong, or the hardware.
  [[nodiscard]] bool is_fatal() const noexcept { return is_fatal(code_); }

  [[nodiscard]] static constexpr bool is_fatal(cudaError_t code) noexcept {
    switch (code) {
      case cudaErrorIllegalAddress:
      case cudaErrorLaunchTimeout:
      case cudaErrorAssert:
      case cudaErrorHardwareStackError:
      case cudaErrorIllegalInstruction:
      case cudaErrorMisalignedAddress:
      case cudaErrorInvalidAddressSpace:
      case cudaErrorInvalidPc:
      case cudaErrorLaunchFailure:
      case cudaErrorECCUncorrectable:
      case cudaErrorNvlinkUncorrectable:
      case cudaErrorUnknown:
        return true;
      default:
        return false;
    }
  }

 private:
  cudaError_t code_;
};

namespace cuda {

/// Throws a CudaError unless `code` is success.
inline void check(cudaError_t code, std::string_view call, const char* file = __builtin_FILE(),
                  int line = __builtin_LINE()) {
  if (code == cudaSuccess) [[likely]]
    return;
  static_cast<void>(cudaGetLastError());  // the runtime keeps it for whoever asks next
  throw CudaError(code, call, file, line);
}

/// For destructors, which have nobody to tell.
inline void forget(cudaError_t code) noexcept {
  if (code != cudaSuccess) static_cast<void>(cudaGetLastError());
}

}  // namespace cuda
}  // namespace dist

/// Throws where the call of the runtime fails.
#define DIST_CUDA_CHECK(call) ::dist::cuda::check(call, #call)
