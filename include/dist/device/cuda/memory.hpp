#pragma once

#include <cstddef>
#include <cstring>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include <dist/core/algorithms.hpp>
#include <dist/core/error.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/core/text.hpp>
#include <dist/device/cuda/api.hpp>
#include <dist/device/cuda/buffer.hpp>
#include <dist/device/cuda/last_work.hpp>
#include <dist/device/cuda/selected_device.hpp>
#include <dist/device/cuda/stream.hpp>

namespace dist::cuda {

/// The memory space of GPUs.
struct DeviceMemory {
  static constexpr bool host_accessible = false;
};

/// The variable memory of a strategy, see ReplicaMemory. Each slice is a separate allocation on each replica's GPU, so
/// that compute-sanitizer detects its bounds; the upper half of an offset is the slice number. Alternatively, a single
/// region in mapped host memory.
class Memory {
 public:
  /// Memory for replicas on these GPUs, allocated by `source`, by default by the runtime.
  explicit Memory(std::span<const std::size_t> devices, std::shared_ptr<MemorySource> source = nullptr)
      : source_(std::move(source)) {
    for (const std::size_t device : devices) streams_.emplace_back(static_cast<int>(device));
  }
  /// Returns mapped host memory for replicas on these GPUs.
  [[nodiscard]] static std::shared_ptr<Memory> on_host(std::span<const std::size_t> devices) {
    auto memory = std::make_shared<Memory>(devices);
    memory->is_on_host_ = true;
    return memory;
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory() {
    if (!wait_for_devices()) leave_behind(std::move(slices_));
  }

  [[nodiscard]] std::size_t replicas() const noexcept { return is_on_host_ ? 1 : streams_.size(); }

  /// Returns an address for the replica's GPU; for all GPUs if the memory is host memory.
  [[nodiscard]] std::byte* at(std::size_t replica, std::size_t offset) const {
    const std::lock_guard lock{mutex_};
    const Slice& slice = slices_[offset >> slice_bits];
    std::byte* const first = is_on_host_ ? slice.on_host.on_devices() : slice.on_gpus[replica].data();
    return first + (offset & (slice_size - 1));
  }

  /// Allocates a slice of `bytes` zero bytes. Returns its offset. Throws OutOfMemory.
  [[nodiscard]] std::size_t allocate(std::size_t bytes) {
    if (bytes >= slice_size)
      throw OutOfMemory(
          concat("An allocation ", is_on_host_ ? "in pinned host memory" : "on a GPU", " of ", bytes, " bytes failed"),
          "no machine has this amount of memory", "Make the variable smaller");
    const std::size_t least = std::max<std::size_t>(bytes, 1);  // for a unique address
    Slice slice = is_on_host_ ? Slice{{}, MappedBuffer{least}} : Slice{on_gpus(least), {}};
    if (is_on_host_) std::memset(slice.on_host.data(), 0, least);
    const std::lock_guard lock{mutex_};
    const auto free = std::find_if(slices_.begin(), slices_.end(), [](const Slice& each) { return each.is_none(); });
    const auto number = static_cast<std::size_t>(free - slices_.begin());
    if (free == slices_.end())
      slices_.push_back(std::move(slice));
    else
      *free = std::move(slice);
    return number << slice_bits;
  }

  /// Frees the slice at `offset` after all work of the GPUs is done. Leaks it if that work does not finish.
  void release(std::size_t offset, std::size_t) noexcept {
    const bool is_unused = wait_for_devices();
    const std::lock_guard lock{mutex_};
    Slice slice;
    std::swap(slice, slices_[offset >> slice_bits]);
    if (!is_unused) leave_behind(std::move(slice));
  }

 private:
  static constexpr unsigned slice_bits = 40;
  static constexpr std::size_t slice_size = std::size_t{1} << slice_bits;

  struct Slice {
    std::vector<DeviceBuffer> on_gpus;
    MappedBuffer on_host;
    [[nodiscard]] bool is_none() const noexcept { return on_gpus.empty() && on_host.data() == nullptr; }
  };

  [[nodiscard]] std::vector<DeviceBuffer> on_gpus(std::size_t bytes) const {
    std::vector<DeviceBuffer> buffers;
    for (std::size_t replica = 0; replica < streams_.size(); ++replica) {
      const int device = streams_[replica].ref().device();
      if (source_ == nullptr)
        buffers.emplace_back(device, bytes);
      else
        buffers.emplace_back(*source_, replica, device, bytes);
    }
    for (std::size_t replica = 0; replica < buffers.size(); ++replica) {
      const StreamRef stream = streams_[replica].ref();
      cuda::check(cudaMemsetAsync(buffers[replica].data(), 0, bytes, stream.get()), "cudaMemsetAsync", stream.device());
      note_work(stream.device(), fill_work);
    }
    for (const Stream& stream : streams_) stream.ref().wait();
    return buffers;
  }

  /// Waits for all streams of the GPUs, as replicas use each other's memory. Returns false at once if a queue is late,
  /// because this wait of the runtime has no timeout.
  [[nodiscard]] bool wait_for_devices() const noexcept {
    for (const Stream& stream : streams_)
      if (has_late_queue(stream.ref().device())) return false;
    int before = 0;
    forget(cudaGetDevice(&before));
    for (const Stream& stream : streams_) {
      forget(cudaSetDevice(stream.ref().device()));
      forget(cudaDeviceSynchronize());
    }
    forget(cudaSetDevice(before));
    return true;
  }

  std::shared_ptr<MemorySource> source_;
  std::vector<Stream> streams_;  // of the replicas
  bool is_on_host_ = false;
  std::vector<Slice> slices_;
  mutable std::mutex mutex_;
};

}  // namespace dist::cuda
