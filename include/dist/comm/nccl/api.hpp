/// NCCL and its errors. Only this header includes nccl.h.
#pragma once

#include <nccl.h>

#include <string>
#include <string_view>

#include <dist/core/error.hpp>
#include <dist/core/text.hpp>

namespace dist {

/// A failed NCCL call of any replica. The strategy cannot reduce on GPUs any more: create it again, or use another
/// policy. Strategies of the host are not affected.
class NcclError : public Error {
 public:
  /// `code` is the result of the call.
  NcclError(ncclResult_t code, std::string_view problem, std::string_view why, std::string_view fix)
      : Error(problem, why, fix), code_(code) {}

  /// The result of the NCCL call.
  [[nodiscard]] ncclResult_t code() const noexcept { return code_; }
  [[nodiscard]] int exit_code() const noexcept override { return ExitCode::try_again; }

 private:
  ncclResult_t code_;
};

namespace nccl {

/// Returns the version as text: "2.28.9" for 22809.
[[nodiscard]] inline std::string version_text(int version) {
  const int major = version / 10000, minor = version / 100 % 100, patch = version % 100;
  return concat(major, ".", minor, ".", patch);
}

namespace detail {
/// Returns a remedy for error `code`.
[[nodiscard]] constexpr std::string_view remedy(ncclResult_t code) {
  switch (code) {
    case ncclUnhandledCudaError:
      return "Check devices, driver and memory with nvidia-smi; NCCL_DEBUG=WARN makes NCCL print the CUDA call that "
             "failed. Then create the strategy again, or use Mirrored<DirectAllReduce, Cuda>";
    case ncclSystemError:
      return "Check that /dev/shm is not full and that NCCL_SOCKET_IFNAME names an existing interface; NCCL_DEBUG=WARN "
             "makes NCCL print the system call that failed. Then create the strategy again";
    case ncclRemoteError:
      return "See what the other replicas' processes printed last, then start all of them again";
    case ncclInvalidArgument:
    case ncclInvalidUsage:
      return "Give each replica its own GPU, or use Mirrored<DirectAllReduce, Cuda>, whose replicas may share GPUs; "
             "NCCL_DEBUG=WARN makes NCCL print the argument that it refuses";
    default:
      return "Run again with NCCL_DEBUG=WARN, which prints more, and create the strategy again";
  }
}
}  // namespace detail

/// Returns the error of a call by a caller such as "replica 1 on GPU 1", with NCCL's last error message.
[[nodiscard]] inline NcclError error_of(ncclResult_t code, std::string_view call, std::string_view who,
                                        ncclComm_t communicator = nullptr) {
  const char* const last = ncclGetLastError(communicator);
  std::string why{ncclGetErrorString(code)};
  if (last != nullptr && *last != '\0') why += concat(": ", last);
  return {code, concat("NCCL refuses '", call, "' of ", who), why, detail::remedy(code)};
}

/// Returns the version of the loaded library. Throws NcclError.
[[nodiscard]] inline int library_version() {
  int version = 0;
  if (const ncclResult_t answer = ncclGetVersion(&version); answer != ncclSuccess)
    throw error_of(answer, "ncclGetVersion(&version)", "this process");
  return version;
}

/// Throws NcclError unless the loaded library has the header's version: the ABI has changed within a major version.
inline void require_version() {
  const int version = library_version();
  if (version != NCCL_VERSION_CODE)
    throw NcclError(ncclInvalidUsage, "The library and the header of NCCL have different versions",
                    concat("libnccl is ", version_text(version), ", the program was compiled with nccl.h of ",
                           version_text(NCCL_VERSION_CODE)),
                    "Compile and run with the same NCCL: set LD_LIBRARY_PATH, or install the wheel nvidia-nccl-cu13 of "
                    "that version");
}

}  // namespace nccl
}  // namespace dist
