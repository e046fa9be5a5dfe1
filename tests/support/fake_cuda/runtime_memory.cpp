#include <cuda_runtime_api.h>

#include <cstring>
#include <string>

#include "call.hpp"
#include "counts.hpp"
#include "device_memory.hpp"
#include "handles.hpp"
#include "machine.hpp"
#include "pinned_memory.hpp"

namespace fake_cuda {
namespace {

/// Terminates the process if a pending operation uses the memory.
void require_unused(std::string_view function, const void* first, const void* end) {
  if (const Operation* const user = pending_user(first, end); user != nullptr)
    refuse(std::string(function) + " of memory that " + describe(*user) + " has not used yet: wait for it before");
}

void require_reached(const void* first, std::size_t bytes, std::string_view function) {
  if (is_device_memory(first, bytes) || is_pinned(first, bytes)) return;
  if (const Allocation* const allocation = allocation_at(first); allocation != nullptr)
    refuse(std::string(function) + " of " + std::to_string(bytes) + " bytes of " + place_of(first) +
           ", where these are not");
  refuse(std::string(function) + " of " + std::to_string(bytes) +
         " bytes of pageable memory of the host, which is not asynchronous: pin it");
}

std::shared_ptr<const std::function<void()>> shared_work(std::function<void()> work) {
  return std::make_shared<const std::function<void()>>(std::move(work));
}

cudaError_t copy(void* to, const void* from, std::size_t bytes, cudaStream_t stream, std::string_view function) {
  CUstream_st& on = handles().stream(stream, function);
  if (bytes == 0) return cudaSuccess;
  require_reached(from, bytes, function);
  require_reached(to, bytes, function);
  if (!is_device_memory(from, bytes) && !is_device_memory(to, bytes))
    refuse(std::string(function) +
           " within memory of the host, for which the host waits: use a kernel, or wait for the "
           "stream and copy");
  ++counter().copies;
  OperationRef operation = next_operation(on, "copy of " + std::to_string(bytes) + " bytes");
  operation->reach = Reach::all;
  operation->addresses = {to, from};
  operation->work = shared_work([to, from, bytes] {
    reads(from, bytes);
    writes(to, bytes);
    const UnseenAccesses unseen;
    std::memcpy(to, from, bytes);
  });
  put_on(on, std::move(operation));
  return cudaSuccess;
}

}  // namespace
}  // namespace fake_cuda

using namespace fake_cuda;

extern "C" {

cudaError_t cudaMalloc(void** first, std::size_t bytes) {
  return call("cudaMalloc", [&] {
    if (const cudaError_t error = forbidden_by_capture(); error != cudaSuccess) return error;
    use_context();
    *first = nullptr;
    if (bytes == 0) return cudaSuccess;
    *first = allocate_on(chosen_device(), bytes);
    return *first == nullptr ? cudaErrorMemoryAllocation : cudaSuccess;
  });
}
cudaError_t cudaFree(void* first) {
  return call("cudaFree", [&] {
    if (const cudaError_t error = forbidden_by_capture(); error != cudaSuccess) return error;
    if (first == nullptr) return cudaSuccess;
    if (const Allocation* const allocation = allocation_at(first); allocation != nullptr)
      require_unused("cudaFree", first, allocation->first + allocation->bytes);
    release_memory(first);
    return cudaSuccess;
  });
}
cudaError_t cudaMallocHost(void** first, std::size_t bytes) {
  return call("cudaMallocHost", [&] {
    if (const cudaError_t error = forbidden_by_capture(); error != cudaSuccess) return error;
    use_context();
    *first = bytes == 0 ? nullptr : allocate_pinned(bytes);
    return cudaSuccess;
  });
}
cudaError_t cudaHostAlloc(void** first, std::size_t bytes, unsigned flags) {
  return call("cudaHostAlloc", [&] {
    if (const cudaError_t error = forbidden_by_capture(); error != cudaSuccess) return error;
    use_context();
    const bool is_mapped = (flags & cudaHostAllocMapped) != 0, is_portable = (flags & cudaHostAllocPortable) != 0;
    const Mapped mapped = !is_mapped ? Mapped::nowhere : is_portable ? Mapped::on_all_gpus : Mapped::on_one_gpu;
    *first = bytes == 0 ? nullptr : allocate_pinned(bytes, mapped, chosen_device());
    return cudaSuccess;
  });
}
cudaError_t cudaHostGetDevicePointer(void** mapped, void* host, unsigned) {
  return call("cudaHostGetDevicePointer", [&] {
    const bool is_mapped = is_mapped_for(chosen_device(), host);
    *mapped = is_mapped ? host : nullptr;  // addresses are unified
    return is_mapped ? cudaSuccess : cudaErrorInvalidValue;
  });
}
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* address) {
  return call("cudaPointerGetAttributes", [&] {
    *attributes = {};
    const Allocation* const allocation = allocation_at(address);
    const bool is_on_gpu = allocation != nullptr && !allocation->freed, is_on_host = is_pinned_address(address);
    attributes->type = is_on_gpu ? cudaMemoryTypeDevice : is_on_host ? cudaMemoryTypeHost : cudaMemoryTypeUnregistered;
    attributes->device = is_on_gpu ? allocation->device : is_on_host ? chosen_device() : -1;
    attributes->hostPointer = is_on_gpu ? nullptr : const_cast<void*>(address);
    attributes->devicePointer =
        is_on_gpu || is_mapped_for(chosen_device(), address) ? const_cast<void*>(address) : nullptr;
    return cudaSuccess;
  });
}
cudaError_t cudaFreeHost(void* first) {
  return call("cudaFreeHost", [&] {
    if (first == nullptr) return cudaSuccess;
    require_unused("cudaFreeHost", first, end_of_pinned(first));
    release_pinned(first);
    return cudaSuccess;
  });
}
cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  return call("cudaMemGetInfo", [&] {
    use_context();
    *total = options().memory;
    *free = *total - memory_in_use(chosen_device());
    return cudaSuccess;
  });
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind, cudaStream_t stream) {
  return call("cudaMemcpyAsync", [&] { return copy(to, from, bytes, stream, "cudaMemcpyAsync"); });
}
cudaError_t cudaMemcpyPeerAsync(void* to, int, const void* from, int, std::size_t bytes, cudaStream_t stream) {
  return call("cudaMemcpyPeerAsync", [&] { return copy(to, from, bytes, stream, "cudaMemcpyPeerAsync"); });
}
cudaError_t cudaMemcpy(void*, const void*, std::size_t, cudaMemcpyKind) {
  refuse("cudaMemcpy waits for all streams: use cudaMemcpyAsync");
}
cudaError_t cudaMemset(void*, int, std::size_t) { refuse("cudaMemset is on the legacy stream: use cudaMemsetAsync"); }
cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t stream) {
  return call("cudaMemsetAsync", [&] {
    CUstream_st& on = handles().stream(stream, "cudaMemsetAsync");
    if (bytes == 0) return cudaSuccess;
    require_reached(to, bytes, "cudaMemsetAsync");
    ++counter().copies;
    OperationRef operation = next_operation(on, "fill of " + std::to_string(bytes) + " bytes");
    operation->addresses = {to};
    operation->work = shared_work([to, value, bytes] {
      writes(to, bytes);
      const UnseenAccesses unseen;
      std::memset(to, value, bytes);
    });
    put_on(on, std::move(operation));
    return cudaSuccess;
  });
}

}  // extern "C"
