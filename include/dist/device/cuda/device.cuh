#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <dist/core/algorithms.hpp>
#include <dist/core/duration.hpp>
#include <dist/core/error.hpp>
#include <dist/core/pointers.hpp>
#include <dist/core/text.hpp>
#include <dist/device/cuda/api.hpp>
#include <dist/device/cuda/input_ring.cuh>
#include <dist/device/cuda/memory.hpp>
#include <dist/device/cuda/peers.hpp>
#include <dist/device/cuda/processors.hpp>
#include <dist/device/cuda/queue.cuh>
#include <dist/device/cuda/wait.hpp>
#include <dist/device/device.hpp>

namespace dist {

/// GPUs as devices: one replica is one host thread with a stream, its variables lie in the GPU's memory. Several replicas
/// may share a GPU. Programs that name it are compiled by nvcc.
struct Cuda {
  static constexpr std::string_view name = "Cuda";
  static constexpr std::string_view type = "gpu";
  using Memory = cuda::Memory;
  using Place = cuda::DeviceMemory;
  using Queue = cuda::Queue;
  using InputRing = cuda::InputRing;
  template <class T>
  using Span = DeviceSpan<T, Place>;

  /// Of replicas on these GPUs, which may use each other's memory where the machine lets them. The host waits so long for
  /// work there, or with 0 as long as it takes.
  class Queues {
   public:
    explicit Queues(std::span<const std::size_t> devices, std::chrono::nanoseconds timeout = cuda::longest_wait) {
      cuda::enable_peer_access(devices);
      for (const std::size_t device : devices)
        states_.push_back(std::make_unique<cuda::QueueState>(static_cast<int>(device), states_.size(), timeout));
    }
    [[nodiscard]] Queue operator[](std::size_t replica) const { return Queue{*states_[replica]}; }

   private:
    std::vector<std::unique_ptr<cuda::QueueState>> states_;
  };

  /// 0 where there is no GPU, or no driver.
  [[nodiscard]] static std::size_t count() {
    int devices = 0;
    const cudaError_t answer = cudaGetDeviceCount(&devices);
    if (answer == cudaErrorNoDevice || answer == cudaErrorInsufficientDriver || answer == cudaErrorStubLibrary) {
      cuda::forget(answer);
      return 0;
    }
    cuda::check(answer, "cudaGetDeviceCount(&devices)");
    return static_cast<std::size_t>(devices);
  }

  /// The first GPUs, one for each replica; all of them where there are more replicas. Throws InvalidArgument where there
  /// is no GPU.
  [[nodiscard]] static std::vector<std::size_t> placement(std::size_t replicas) {
    const std::size_t devices = count();
    if (devices == 0 && replicas > 0)
      throw InvalidArgument("No replica can run on a GPU", "this process sees none",
                            "Look at nvidia-smi and CUDA_VISIBLE_DEVICES, or use Cpu");
    std::vector<std::size_t> placed;
    for (std::size_t device = 0; device < std::min(replicas, devices); ++device) placed.push_back(device);
    return placed;
  }

  /// Near the replicas' GPUs, see cuda::processors_near.
  [[nodiscard]] static std::vector<std::size_t> processors(std::span<const std::size_t> devices) {
    return cuda::processors_near(devices);
  }

  /// "/gpu:0"
  [[nodiscard]] static std::string device_name(std::size_t device) { return text("/", type, ":", device); }
};

}  // namespace dist
