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
#include <dist/device/affinity.hpp>
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

namespace dist::cuda {

/// True if kernels of `device` can access the memory of `peer`.
[[nodiscard]] inline bool reaches(int device, int peer) {
  if (device == peer) return true;
  int can = 0;
  DIST_CUDA_CHECK(cudaDeviceCanAccessPeer(&can, device, peer));
  return can != 0;
}

/// Lets kernels of each of these GPUs access the memory of the others, where the machine supports it.
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

/// GPUs as devices: each replica is a host thread with a stream, and its variables are in GPU memory. Several replicas
/// may share a GPU. Programs that use it need nvcc.
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

  /// The queues of replicas on these GPUs. Enables peer access where supported. `timeout` limits waits of the host; 0
  /// means no limit. The constructor selects the first GPU for the calling thread, to avoid a context on /gpu:0.
  class Queues {
   public:
    explicit Queues(std::span<const std::size_t> devices, std::chrono::nanoseconds timeout = cuda::longest_wait) {
      if (!devices.empty()) cuda::select_device(static_cast<int>(devices.front()));
      cuda::enable_peer_access(devices);
      for (const std::size_t device : devices)
        states_.push_back(std::make_unique<cuda::QueueState>(static_cast<int>(device), states_.size(), timeout));
    }
    /// The queue of a replica.
    [[nodiscard]] Queue operator[](std::size_t replica) const { return Queue{*states_[replica]}; }

   private:
    std::vector<std::unique_ptr<cuda::QueueState>> states_;
  };

  /// Returns the number of GPUs visible to this process (CUDA_VISIBLE_DEVICES); 0 without a driver. Does not create
  /// contexts.
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

  /// Returns the first GPUs of this process's share, one per replica, or the whole share if there are more replicas.
  /// The processes of this machine divide the visible GPUs into equal shares, or use them round-robin if there are
  /// fewer GPUs than processes. `here` is this process's local rank. Throws NoGpu.
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

  /// Throws the error for `device`, which is not a visible GPU: NoGpu, or InvalidArgument, which explains
  /// CUDA_VISIBLE_DEVICES.
  [[noreturn]] static void refuse(std::string_view device) {
    const std::size_t devices = count();
    if (devices == 0) refuse_all();
    throw InvalidArgument(concat("Device '", device, "' does not exist"),
                          cuda::visible_devices(devices, cuda::visible_variable()),
                          "Name a visible GPU, or change CUDA_VISIBLE_DEVICES before the program starts: the numbers "
                          "in names count the visible GPUs, not all GPUs of the machine");
  }

  /// Throws InvalidArgument unless kernels of each replica's GPU can access the memory of all others.
  static void require_reach(const Queues& queues, std::size_t replicas) {
    for (std::size_t one = 0; one < replicas; ++one)
      for (std::size_t other = 0; other < replicas; ++other) {
        const int from = queues[one].stream().device(), to = queues[other].stream().device();
        if (!cuda::reaches(from, to))
          throw InvalidArgument(
              concat("Kernels of GPU ", from, " cannot access the memory of GPU ", to),
              concat("replicas ", one, " and ", other, " run on these GPUs, and would reduce each other's memory"),
              "Use Mirrored<NcclAllReduce>, which does not need this access, let the replicas share one GPU, or name "
              "GPUs for which 'nvidia-smi topo -p2p r' prints OK");
      }
  }

  /// Returns processors near the replicas' GPUs, see cuda::processors_near.
  [[nodiscard]] static std::vector<std::size_t> processors(std::span<const std::size_t> devices) {
    return cuda::processors_near(devices);
  }

  /// Returns a name such as "/gpu:0".
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
