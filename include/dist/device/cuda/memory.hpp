#pragma once

#include <cstddef>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include <dist/core/algorithms.hpp>
#include <dist/core/error.hpp>
#include <dist/core/text.hpp>
#include <dist/device/cuda/api.hpp>
#include <dist/device/cuda/buffer.hpp>
#include <dist/device/cuda/last_work.hpp>
#include <dist/device/cuda/selected_device.hpp>
#include <dist/device/cuda/stream.hpp>

namespace dist::cuda {

/// Where memory of GPUs lies.
struct DeviceMemory {
  static constexpr bool host_accessible = false;
};

/// The memory that a strategy gives its variables: see ReplicaMemory. Every slice is an allocation of its own on the GPU
/// of each replica, so that compute-sanitizer sees where it ends; an offset holds the number of the slice in its upper
/// half.
class Memory {
 public:
  /// Of replicas on these GPUs.
  explicit Memory(std::span<const std::size_t> devices) {
    for (const std::size_t device : devices) streams_.emplace_back(static_cast<int>(device));
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory() { wait_for_devices(); }

  [[nodiscard]] std::size_t replicas() const noexcept { return streams_.size(); }

  /// An address of the replica's GPU.
  [[nodiscard]] std::byte* at(std::size_t replica, std::size_t offset) const {
    const std::lock_guard lock{mutex_};
    return slices_[offset >> slice_bits][replica].data() + (offset & (slice_size - 1));
  }

  /// The offset of a new slice of `bytes` zero bytes. Throws OutOfMemory.
  [[nodiscard]] std::size_t allocate(std::size_t bytes) {
    if (bytes >= slice_size)
      throw OutOfMemory(text("No memory on a GPU of ", bytes, " bytes"), "no GPU has so much",
                        "Make the variable smaller");
    const std::size_t least = std::max<std::size_t>(bytes, 1);  // an address of its own
    std::vector<DeviceBuffer> slice;
    for (const Stream& stream : streams_) slice.emplace_back(stream.ref().device(), least);
    for (std::size_t replica = 0; replica < replicas(); ++replica) {
      const StreamRef stream = streams_[replica].ref();
      check(cudaMemsetAsync(slice[replica].data(), 0, least, stream.get()), "cudaMemsetAsync", stream.device());
      note_work(stream.device(), fill_work);
    }
    for (const Stream& stream : streams_) stream.ref().wait();
    const std::lock_guard lock{mutex_};
    const auto free = std::find_if(slices_.begin(), slices_.end(), [](const auto& each) { return each.empty(); });
    const auto number = static_cast<std::size_t>(free - slices_.begin());
    if (free == slices_.end())
      slices_.push_back(std::move(slice));
    else
      *free = std::move(slice);
    return number << slice_bits;
  }

  /// Gives back the slice at `offset`, once the GPUs have done all that was put there.
  void release(std::size_t offset, std::size_t) noexcept {
    wait_for_devices();
    const std::lock_guard lock{mutex_};
    slices_[offset >> slice_bits].clear();
  }

 private:
  static constexpr unsigned slice_bits = 40;
  static constexpr std::size_t slice_size = std::size_t{1} << slice_bits;

  /// Whoever put work there, and on whatever stream: replicas use each other's memory.
  void wait_for_devices() const noexcept {
    int before = 0;
    forget(cudaGetDevice(&before));
    for (const Stream& stream : streams_) {
      forget(cudaSetDevice(stream.ref().device()));
      forget(cudaDeviceSynchronize());
    }
    forget(cudaSetDevice(before));
  }

  std::vector<Stream> streams_;  // of the replicas
  std::vector<std::vector<DeviceBuffer>> slices_;
  mutable std::mutex mutex_;
};

}  // namespace dist::cuda
