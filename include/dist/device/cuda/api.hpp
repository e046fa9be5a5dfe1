/// The CUDA runtime and the exceptions for its errors. The only header that includes the runtime.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <string>
#include <string_view>

#include <dist/core/error.hpp>
#include <dist/core/text.hpp>
#include <dist/device/cuda/last_work.hpp>
#include <dist/device/cuda/visible.hpp>

namespace dist {

/// A failed call of the CUDA runtime. The cause may be asynchronous work that was submitted earlier.
class CudaError : public Error {
 public:
  /// `code` is the result of the call.
  CudaError(cudaError_t code, std::string_view problem, std::string_view why, std::string_view fix)
      : Error(problem, why, fix), code_(code) {}

  /// The result of the failed call.
  [[nodiscard]] cudaError_t code() const noexcept { return code_; }
  /// True if all later calls of this process fail as well, after a fatal error of a kernel or the hardware.
  [[nodiscard]] bool is_fatal() const noexcept { return is_fatal(code_); }

  /// True if calls fail with `code` until the process ends.
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

/// The process cannot use GPUs: the driver is missing or incompatible, or all GPUs are hidden. CPU strategies still
/// work.
class NoGpu : public CudaError {
 public:
  using CudaError::CudaError;

  /// True if `code` means that the process cannot use GPUs.
  [[nodiscard]] static constexpr bool is_code(cudaError_t code) noexcept {
    switch (code) {
      case cudaErrorNoDevice:
      case cudaErrorInsufficientDriver:
      case cudaErrorStubLibrary:
      case cudaErrorSystemNotReady:
      case cudaErrorSystemDriverMismatch:
      case cudaErrorCompatNotSupportedOnDevice:
        return true;
      default:
        return false;
    }
  }
};

/// The program was not compiled for the architecture of the GPU.
class NoKernelImage : public CudaError {
 public:
  using CudaError::CudaError;

  /// True if `code` means that no kernel fits the GPU.
  [[nodiscard]] static constexpr bool is_code(cudaError_t code) noexcept {
    return code == cudaErrorNoKernelImageForDevice || code == cudaErrorInvalidKernelImage ||
           code == cudaErrorUnsupportedPtxVersion;
  }
};

/// A fatal error of a kernel or the hardware, see CudaError::is_fatal. The process can no longer use GPUs; CPU
/// strategies still work.
class GpuLost : public CudaError {
 public:
  using CudaError::CudaError;

  [[nodiscard]] int exit_code() const noexcept override { return ExitCode::try_again; }
};

/// An operation that cannot be captured in a graph, such as an allocation or a wait, during a capture.
class NotCapturable : public CudaError {
 public:
  using CudaError::CudaError;

  /// True if `code` means that a capture forbids the call.
  [[nodiscard]] static constexpr bool is_code(cudaError_t code) noexcept {
    return code >= cudaErrorStreamCaptureUnsupported && code <= cudaErrorStreamCaptureWrongThread;
  }
};

namespace cuda {

/// The suggestion of errors about operations that cannot be captured.
inline constexpr std::string_view do_it_outside =
    "Allocate memory before the capture: let strategy.run call the step once. Read results, and wait for them, after "
    "the step";

/// The suggestion of errors about insufficient GPU memory.
inline constexpr std::string_view use_less_memory =
    "Make the model or the batch smaller, or check with nvidia-smi which other processes use the GPU";

/// Stands for the GPU that the calling thread has selected.
inline constexpr int selected_by_thread = -1;

/// Ignores an error in a destructor.
inline void forget(cudaError_t code) noexcept {
  if (code != cudaSuccess) static_cast<void>(cudaGetLastError());
}

namespace detail {

inline constexpr std::string_view use_the_host =
    "or compute on the host: use OneDevice<Cpu>, Mirrored<ThreadAllReduce> or CentralStorage<Cpu>";

/// Formats a CUDA version number: "13.0" for 13000.
[[nodiscard]] inline std::string version_text(int version) { return concat(version / 1000, ".", version % 1000 / 10); }

/// The cause of a NoGpu error code, and a suggestion.
struct Remedy {
  std::string why, fix;
};
[[nodiscard]] inline Remedy remedy_without_gpu(cudaError_t code) {
  switch (code) {
    case cudaErrorInsufficientDriver: {
      int driver = 0, runtime = 0;
      forget(cudaDriverGetVersion(&driver));
      forget(cudaRuntimeGetVersion(&runtime));
      if (driver == 0)
        return {"no NVIDIA driver was found",
                "Install it, or make it available in the container, so that nvidia-smi lists the GPUs"};
      return {concat("the driver is too old: it is for CUDA ", version_text(driver), ", the program's runtime is ",
                     version_text(runtime)),
              concat("Update the driver, or build with a toolkit for CUDA ", driver / 1000)};
    }
    case cudaErrorStubLibrary:
      return {"libcuda.so.1 is the toolkit's stub, which is for linking only",
              "Remove its folder from LD_LIBRARY_PATH"};
    case cudaErrorSystemNotReady:
      return {"the GPUs are not ready", "Start the service nvidia-fabricmanager"};
    case cudaErrorSystemDriverMismatch:
      return {"libcuda.so.1 and the driver in the kernel have different versions", "Restart the machine"};
    case cudaErrorCompatNotSupportedOnDevice:
      return {"these GPUs do not support the package cuda-compat", "Remove its folder from LD_LIBRARY_PATH"};
    default:
      return {visible_devices(0, visible_variable()),
              visible_variable() == nullptr
                  ? "Check the GPUs with nvidia-smi"
                  : "Name GPUs of nvidia-smi in CUDA_VISIBLE_DEVICES before the program starts, or unset it"};
  }
}

/// Returns ", where 12 of 1000 bytes are free" for the selected GPU; empty if the runtime cannot report it.
[[nodiscard]] inline std::string free_memory() {
  std::size_t free = 0, total = 0;
  const cudaError_t answer = cudaMemGetInfo(&free, &total);
  forget(answer);
  return answer == cudaSuccess ? concat(", where ", free, " of ", total, " bytes are free") : std::string{};
}

[[nodiscard]] inline std::string architecture_of(int device) {
  int major = 0, minor = 0;
  forget(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device));
  forget(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device));
  return concat("sm_", major, minor);
}

/// Throws the exception for `code`: OutOfMemory, or a CudaError of the matching type.
[[noreturn]] inline void throw_error(cudaError_t code, std::string_view call, int device, const char* file, int line) {
  if (device == selected_by_thread) forget(cudaGetDevice(&device));
  static_cast<void>(cudaGetLastError());  // clears the runtime's sticky error
  const std::string place = concat("in ", file, ":", line);
  const std::string refused = concat("CUDA refuses '", call, "'");
  const std::string said = concat(cudaGetErrorName(code), ": ", cudaGetErrorString(code), ", ");
  const std::string why = device < 0 ? said + place : concat(said, "on GPU ", device, " ", place);
  if (NoGpu::is_code(code)) {
    const Remedy remedy = remedy_without_gpu(code);
    throw NoGpu(code, "No replica can run on a GPU",
                concat(remedy.why, "; ", cudaGetErrorName(code), " of '", call, "' ", place),
                concat(remedy.fix, ", ", use_the_host));
  }
  if (NoKernelImage::is_code(code))
    throw NoKernelImage(code, refused, concat(why, ", which is ", architecture_of(device)),
                        concat("Compile with nvcc -arch=", architecture_of(device),
                               ", or CMAKE_CUDA_ARCHITECTURES for several architectures, with a toolkit that is not "
                               "newer than the driver, ",
                               use_the_host));
  if (NotCapturable::is_code(code))
    throw NotCapturable(code, refused, concat(why, ", while work is captured as a graph"), do_it_outside);
  if (CudaError::is_fatal(code)) {
    const WorkName* const last = device < 0 ? nullptr : last_work(device);
    throw GpuLost(
        code, refused,
        last == nullptr ? why
                        : concat(why, "; the last work submitted to this GPU is a ", last->kind, last->parameters),
        "Start the process again: it has lost its GPUs, and all further calls for them fail; strategies on the host "
        "continue to work. compute-sanitizer finds the kernel");
  }
  if (code == cudaErrorMemoryAllocation) throw OutOfMemory(refused, concat(why, free_memory()), use_less_memory);
  if (code == cudaErrorInvalidDevice) {
    int count = 0;
    forget(cudaGetDeviceCount(&count));
    throw CudaError(code, refused,
                    concat(said, place, "; ", visible_devices(static_cast<std::size_t>(count), visible_variable())),
                    "Name a visible GPU, or change CUDA_VISIBLE_DEVICES before the program starts: nvidia-smi lists "
                    "the GPUs of the machine");
  }
  throw CudaError(code, refused, why, "Check devices, driver and memory with nvidia-smi");
}

}  // namespace detail

/// Throws an exception unless `code`, the result of a call for `device`, is success: NoGpu, NoKernelImage, GpuLost,
/// another CudaError, or OutOfMemory.
inline void check(cudaError_t code, std::string_view call, int device = selected_by_thread,
                  const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  if (code != cudaSuccess) [[unlikely]]
    detail::throw_error(code, call, device, file, line);
}

}  // namespace cuda
}  // namespace dist

/// Throws an exception if the call of the runtime fails.
#define DIST_CUDA_CHECK(call) ::dist::cuda::check(call, #call)
