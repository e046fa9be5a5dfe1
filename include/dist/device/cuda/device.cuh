#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <dist/core/algorithms.hpp>
#include <dist/core/duration.hpp>
#include <dist/core/error.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/core/text.hpp>
#include <dist/device/cuda/api.hpp>
#include <dist/device/cuda/graph.cuh>
#include <dist/device/cuda/input_ring.cuh>
#include <dist/device/cuda/memory.hpp>
#include <dist/device/cuda/processors.hpp>
#include <dist/device/cuda/queue.cuh>
#include <dist/device/cuda/selected_device.hpp>
#include <dist/device/cuda/visible.hpp>
#include <dist/device/cuda/wait.hpp>
#include <dist/device/device.hpp>
#include <dist/device/processor_share.hpp>

namespace dist::cuda {

/// Whether kernels of `device` can use the memory of `peer`.
[[nodiscard]] inline bool reaches(int device, int peer) {
  if (device == peer) return true;
  int can = 0;
  DIST_CUDA_CHECK(cudaDeviceCanAccessPeer(&can, device, peer));
  return can != 0;
}

/// Kernels of each of these GPUs may use the memory of the others from now on, where the machine lets them.
inline void enable_peer_access(std::span<const std::size_t> devices) {
  for (const std::size_t device : devices)
    for (const std::size_t peer : devices) {
      if (device == peer || !reaches(static_cast<int>(device), static_cast<int>(peer))) continue;
      const SelectedDevice selected{static_cast<int>(device)};
      const cudaError_t answer = cudaDeviceEnablePeerAccess(static_cast<int>(peer), 0);
      if (answer == cudaErrorPeerAccessAlreadyEnabled)
        forget(answer);
      else
        cuda::check(answer, "cudaDeviceEnablePeerAccess(peer, 0)");
    }
}

}  // namespace dist::cuda

namespace dist {

/// GPUs as devices: one replica is one host thread with a stream, its variables lie in the GPU's memory. Several replicas
/// may share a GPU. Programs that name it are compiled by nvcc.
struct Cuda {
  static constexpr std::string_view name = "Cuda";
  static constexpr std::string_view type = "gpu";
  using Memory = cuda::Memory;
  using Space = cuda::DeviceMemory;
  using Queue = cuda::Queue;
  using InputRing = cuda::InputRing;
  using Graph = cuda::Graph;
  template <class T>
  using Span = DeviceSpan<T, Space>;

  /// Of replicas on these GPUs, which may use each other's memory where the machine lets them. The host waits so long for
  /// work there, or with 0 as long as it takes. The thread that makes them works with the first GPU from then on, so that
  /// none gets a context but these: a thread that selected none would go back to /gpu:0.
  class Queues {
   public:
    explicit Queues(std::span<const std::size_t> devices, std::chrono::nanoseconds timeout = cuda::longest_wait) {
      if (!devices.empty()) cuda::select_device(static_cast<int>(devices.front()));
      cuda::enable_peer_access(devices);
      for (const std::size_t device : devices)
        states_.push_back(std::make_unique<cuda::QueueState>(static_cast<int>(device), states_.size(), timeout));
    }
    [[nodiscard]] Queue operator[](std::size_t replica) const { return Queue{*states_[replica]}; }

   private:
    std::vector<std::unique_ptr<cuda::QueueState>> states_;
  };

  /// The GPUs that CUDA_VISIBLE_DEVICES leaves to this process; 0 where there is none, or no driver. No GPU gets a context.
  [[nodiscard]] static std::size_t count() {
    int devices = 0;
    const cudaError_t answer = cudaGetDeviceCount(&devices);
    if (NoGpu::is_code(answer)) {
      cuda::forget(answer);
      return 0;
    }
    cuda::check(answer, "cudaGetDeviceCount(&devices)");
    return static_cast<std::size_t>(devices);
  }

  /// The first GPUs of this process's share, one for each replica; all of that share where there are more replicas. The
  /// processes of this machine share the GPUs that each of them sees: in parts of the same size, or in turn where there are
  /// fewer GPUs than processes. `here` is this one among them, by its local rank where a launcher started them. Throws
  /// NoGpu.
  [[nodiscard]] static std::vector<std::size_t> placement(std::size_t replicas,
                                                          LocalProcesses here = ::dist::detail::local_processes()) {
    const std::size_t devices = count();
    if (replicas == 0) return {};
    if (devices == 0) refuse_all();
    const std::size_t share = std::max<std::size_t>(devices / here.count, 1);
    const std::size_t first = here.number * share % devices;
    std::vector<std::size_t> placed;
    for (std::size_t device = 0; device < std::min(replicas, share); ++device) placed.push_back(first + device);
    return placed;
  }

  /// Throws the error of `device`, which names no visible GPU: NoGpu, or InvalidArgument, which says what
  /// CUDA_VISIBLE_DEVICES makes of the machine's GPUs.
  [[noreturn]] static void refuse(std::string_view device) {
    const std::size_t devices = count();
    if (devices == 0) refuse_all();
    throw InvalidArgument(concat("Device '", device, "' is not there"),
                          cuda::visible_devices(devices, cuda::visible_variable()),
                          "Name a GPU that is visible, or change CUDA_VISIBLE_DEVICES before the program starts: the "
                          "numbers of names count the visible GPUs, not those of the machine");
  }

  /// Throws InvalidArgument where kernels of one of these replicas' GPUs cannot use the memory of another.
  static void require_reach(const Queues& queues, std::size_t replicas) {
    for (std::size_t one = 0; one < replicas; ++one)
      for (std::size_t other = 0; other < replicas; ++other) {
        const int from = queues[one].stream().device(), to = queues[other].stream().device();
        if (!cuda::reaches(from, to))
          throw InvalidArgument(
              concat("Kernels of GPU ", from, " do not reach the memory of GPU ", to),
              concat("replicas ", one, " and ", other, " are there, and would reduce each other's memory"),
              "Use Mirrored<NcclAllReduce>, which needs no such access, let the replicas share one GPU, or name GPUs "
              "that 'nvidia-smi topo -p2p r' calls OK");
      }
  }

  /// Near the replicas' GPUs, see cuda::processors_near.
  [[nodiscard]] static std::vector<std::size_t> processors(std::span<const std::size_t> devices) {
    return cuda::processors_near(devices);
  }

  /// "/gpu:0"
  [[nodiscard]] static std::string device_name(std::size_t device) { return concat("/", type, ":", device); }

 private:
  [[noreturn]] static void refuse_all() {
    int devices = 0;
    const cudaError_t answer = cudaGetDeviceCount(&devices);
    cuda::check(answer == cudaSuccess ? cudaErrorNoDevice : answer, "cudaGetDeviceCount(&devices)");
    __builtin_unreachable();
  }
};

}  // namespace dist
