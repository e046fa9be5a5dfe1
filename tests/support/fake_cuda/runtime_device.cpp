#include <cuda_runtime_api.h>

#include <cstdio>
#include <cstring>

#include "call.hpp"
#include "handles.hpp"
#include "machine.hpp"

namespace fake_cuda {
namespace {

constexpr int version = CUDART_VERSION;

int visible_count() { return static_cast<int>(visible_devices().size()); }

bool is_device(int device) { return device >= 0 && device < visible_count(); }

int attribute_of(cudaDeviceAttr attribute) {
  switch (attribute) {
    case cudaDevAttrMultiProcessorCount:
      return 4;
    case cudaDevAttrComputeCapabilityMajor:
      return 9;
    case cudaDevAttrMaxThreadsPerBlock:
      return 1024;
    case cudaDevAttrWarpSize:
      return 32;
    case cudaDevAttrPageableMemoryAccess:
      return options().pageable_access ? 1 : 0;
    default:
      return 0;
  }
}

}  // namespace
}  // namespace fake_cuda

using namespace fake_cuda;

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  return call("cudaGetDeviceCount", [&] {
    *count = visible_count();
    return cudaSuccess;
  });
}
cudaError_t cudaDriverGetVersion(int* answer) {
  return call("cudaDriverGetVersion", [&] { return *answer = options().driver.value_or(version), cudaSuccess; });
}
cudaError_t cudaRuntimeGetVersion(int* answer) {
  return call("cudaRuntimeGetVersion", [&] { return *answer = version, cudaSuccess; });
}
cudaError_t cudaSetDevice(int device) {
  return call("cudaSetDevice", [&] {
    if (!is_device(device)) return cudaErrorInvalidDevice;
    chosen_device() = device;
    use_context();  // since CUDA 12
    return cudaSuccess;
  });
}
cudaError_t cudaGetDevice(int* device) {
  return call("cudaGetDevice", [&] { return *device = chosen_device(), cudaSuccess; });
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  return call("cudaDeviceGetAttribute", [&] {
    if (!is_device(device)) return cudaErrorInvalidDevice;
    *value = attribute_of(attribute);
    return cudaSuccess;
  });
}
cudaError_t cudaDeviceGetPCIBusId(char* text, int length, int device) {
  return call("cudaDeviceGetPCIBusId", [&] {
    if (!is_device(device)) return cudaErrorInvalidDevice;
    std::snprintf(text, static_cast<std::size_t>(length), "FFFF:%02X:00.0",
                  static_cast<unsigned>(visible_devices()[static_cast<std::size_t>(device)]));
    return cudaSuccess;
  });
}
cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  return call("cudaDeviceCanAccessPeer", [&] {
    if (!is_device(device) || !is_device(peer)) return cudaErrorInvalidDevice;
    *can = device != peer && options().peer_access ? 1 : 0;
    return cudaSuccess;
  });
}
cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags) {
  return call("cudaDeviceEnablePeerAccess", [&] {
    if (!is_device(peer) || peer == chosen_device()) return cudaErrorInvalidDevice;
    if (flags != 0) return cudaErrorInvalidValue;
    if (!options().peer_access) return cudaErrorPeerAccessUnsupported;
    use_context();
    return give_access(chosen_device(), peer) ? cudaSuccess : cudaErrorPeerAccessAlreadyEnabled;
  });
}

cudaError_t cudaGetLastError() { return kept_error(true); }
cudaError_t cudaPeekAtLastError() { return kept_error(false); }

#define FAKE_CUDA_NAME(error) \
  case error:                 \
    return #error
const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
    FAKE_CUDA_NAME(cudaSuccess);
    FAKE_CUDA_NAME(cudaErrorInvalidValue);
    FAKE_CUDA_NAME(cudaErrorMemoryAllocation);
    FAKE_CUDA_NAME(cudaErrorStubLibrary);
    FAKE_CUDA_NAME(cudaErrorInsufficientDriver);
    FAKE_CUDA_NAME(cudaErrorSystemNotReady);
    FAKE_CUDA_NAME(cudaErrorSystemDriverMismatch);
    FAKE_CUDA_NAME(cudaErrorNoKernelImageForDevice);
    FAKE_CUDA_NAME(cudaErrorUnsupportedPtxVersion);
    FAKE_CUDA_NAME(cudaErrorInvalidConfiguration);
    FAKE_CUDA_NAME(cudaErrorNoDevice);
    FAKE_CUDA_NAME(cudaErrorInvalidDevice);
    FAKE_CUDA_NAME(cudaErrorInvalidResourceHandle);
    FAKE_CUDA_NAME(cudaErrorIllegalState);
    FAKE_CUDA_NAME(cudaErrorNotReady);
    FAKE_CUDA_NAME(cudaErrorIllegalAddress);
    FAKE_CUDA_NAME(cudaErrorLaunchFailure);
    FAKE_CUDA_NAME(cudaErrorPeerAccessUnsupported);
    FAKE_CUDA_NAME(cudaErrorPeerAccessAlreadyEnabled);
    FAKE_CUDA_NAME(cudaErrorStreamCaptureUnsupported);
    FAKE_CUDA_NAME(cudaErrorStreamCaptureInvalidated);
    FAKE_CUDA_NAME(cudaErrorStreamCaptureUnjoined);
    FAKE_CUDA_NAME(cudaErrorStreamCaptureIsolation);
    FAKE_CUDA_NAME(cudaErrorGraphExecUpdateFailure);
    default:
      return "cudaError";
  }
}
#undef FAKE_CUDA_NAME
const char* cudaGetErrorString(cudaError_t error) {
  return error == cudaSuccess ? "no error" : "an error of the fake GPU";
}

}  // extern "C"
