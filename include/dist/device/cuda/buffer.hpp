#pragma once

#include <atomic>
#include <cstddef>
#include <string_view>
#include <utility>

#include <dist/core/error.hpp>
#include <dist/core/text.hpp>
#include <dist/device/cuda/api.hpp>
#include <dist/device/cuda/selected_device.hpp>

namespace dist::cuda {

namespace detail {
/// Throws OutOfMemory if the GPU has too little memory for an allocation, and CudaError for other errors.
inline void check_allocation(cudaError_t code, std::size_t bytes, std::string_view where, std::string_view call) {
  if (code != cudaErrorMemoryAllocation) return check(code, call);
  forget(code);
  throw OutOfMemory(concat("An allocation ", where, " of ", bytes, " bytes failed"),
                    concat("the CUDA runtime refuses '", call, "'", free_memory()), use_less_memory);
}
}  // namespace detail

/// A custom allocator for a strategy's variables on GPUs. Thread-safe.
class MemorySource {
 public:
  MemorySource() = default;
  MemorySource(const MemorySource&) = delete;
  MemorySource& operator=(const MemorySource&) = delete;
  virtual ~MemorySource() = default;

  /// Returns `bytes` uninitialised bytes on the GPU `device` of a replica. Throws OutOfMemory.
  [[nodiscard]] virtual std::byte* allocate(std::size_t replica, int device, std::size_t bytes) = 0;
  /// Frees unused memory of the replica.
  virtual void release(std::size_t replica, std::byte* first) noexcept = 0;
};

/// Uninitialised GPU memory. Destroy it only after all work that uses it is done.
class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  /// Allocates `bytes` bytes. Throws OutOfMemory.
  DeviceBuffer(int device, std::size_t bytes) {
    const SelectedDevice selected{device};
    void* first = nullptr;
    detail::check_allocation(cudaMalloc(&first, bytes), bytes, concat("on GPU ", device), "cudaMalloc(&first, bytes)");
    data_ = static_cast<std::byte*>(first);
  }
  /// Allocates memory for a replica from `source`, which must outlive it. Throws OutOfMemory.
  DeviceBuffer(MemorySource& source, std::size_t replica, int device, std::size_t bytes)
      : data_(source.allocate(replica, device, bytes)), source_(&source), replica_(replica) {}
  /// Takes the memory of `other`, which is empty afterwards.
  DeviceBuffer(DeviceBuffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), source_(other.source_), replica_(other.replica_) {}
  /// Exchanges the memory of both buffers.
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(source_, other.source_);
    std::swap(replica_, other.replica_);
    return *this;
  }
  ~DeviceBuffer() {
    if (data_ == nullptr) return;
    if (source_ == nullptr)
      forget(cudaFree(data_));
    else
      source_->release(replica_, data_);
  }

  /// A device address.
  [[nodiscard]] std::byte* data() const noexcept { return data_; }

 private:
  std::byte* data_ = nullptr;
  MemorySource* source_ = nullptr;  // null: the runtime
  std::size_t replica_ = 0;
};

/// Uninitialised pinned host memory.
class PinnedBuffer {
 public:
  PinnedBuffer() = default;
  /// Takes the `flags` of cudaHostAlloc. Throws OutOfMemory.
  explicit PinnedBuffer(std::size_t bytes, unsigned flags = cudaHostAllocDefault) : size_(bytes) {
    void* first = nullptr;
    detail::check_allocation(cudaHostAlloc(&first, bytes, flags), bytes, "in pinned host memory",
                             "cudaHostAlloc(&first, bytes, flags)");
    data_ = static_cast<std::byte*>(first);
  }
  /// Takes the memory of `other`, which is empty afterwards.
  PinnedBuffer(PinnedBuffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  /// Exchanges the memory of both buffers.
  PinnedBuffer& operator=(PinnedBuffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~PinnedBuffer() {
    if (data_ != nullptr) forget(cudaFreeHost(data_));
  }

  /// The address in the process; null for an empty buffer.
  [[nodiscard]] std::byte* data() const noexcept { return data_; }
  /// The size in bytes.
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

 private:
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

/// True if this process has ever created a MappedBuffer.
inline constinit std::atomic<bool> has_mapped_memory{false};

/// Pinned host memory that kernels of all GPUs can access.
class MappedBuffer : public PinnedBuffer {
 public:
  MappedBuffer() = default;
  /// Allocates `bytes` bytes. Throws OutOfMemory.
  explicit MappedBuffer(std::size_t bytes) : PinnedBuffer(bytes, cudaHostAllocMapped | cudaHostAllocPortable) {
    void* mapped = nullptr;
    DIST_CUDA_CHECK(cudaHostGetDevicePointer(&mapped, data(), 0));
    on_devices_ = static_cast<std::byte*>(mapped);
    has_mapped_memory.store(true);
  }

  /// The address for kernels; `data()` is the address for the host.
  [[nodiscard]] std::byte* on_devices() const noexcept { return on_devices_; }

 private:
  std::byte* on_devices_ = nullptr;
};

/// Returns the host address of memory with device address `address`; null if it is GPU memory.
[[nodiscard]] inline void* on_host(const void* address) {
  cudaPointerAttributes attributes{};
  DIST_CUDA_CHECK(cudaPointerGetAttributes(&attributes, address));
  return attributes.type == cudaMemoryTypeHost ? attributes.hostPointer : nullptr;
}

}  // namespace dist::cuda
