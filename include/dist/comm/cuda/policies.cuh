#pragma once

#include <cstddef>
#include <string_view>

#include <dist/comm/direct/direct_collectives.hpp>
#include <dist/comm/direct/hierarchical_collectives.hpp>
#include <dist/comm/memory/hierarchical_copy_all_reduce.hpp>
#include <dist/comm/memory/reduction_to_one_device.hpp>
#include <dist/device/cuda/buffer.hpp>
#include <dist/device/cuda/device.cuh>

namespace dist {

/// Reduction by kernels that access all replicas' memory, on GPUs with peer access. Several replicas may share one GPU.
/// Sums are in rank order, so they are bit-identical to ThreadAllReduce on Cpu if the GPU rounds like the host.
struct DirectAllReduce {
  static constexpr std::string_view name = "DirectAllReduce";
  template <class D>
  using State = DirectCollectives<Cuda>::State<D>;
  template <class C>
  using On = DirectCollectives<Cuda>::On<C>;
};

namespace cuda {
/// GPU memory for the combined values of a group.
struct GroupBuffer : DeviceBuffer {
  /// Throws OutOfMemory.
  GroupBuffer(const Queue& queue, std::size_t bytes) : DeviceBuffer(queue.stream().device(), bytes) {}
};
}  // namespace cuda

/// Reduction of GPU memory by kernels: in each group one GPU combines the group's values, then reads the other group's
/// and writes the result to its own group (spec H06).
template <>
struct HierarchicalCopyAllReduce::OnDevices<Cuda> : HierarchicalCollectives<Cuda, cuda::GroupBuffer> {
  static constexpr std::string_view name = HierarchicalCopyAllReduce::name;
};

/// Reduction of GPU memory by a kernel of replica 0, which writes the result for all (spec H04).
template <>
struct ReductionToOneDevice::OnDevices<Cuda> : DirectCollectives<Cuda, ReductionToOneDevice, detail::AllOnFirst> {
  static constexpr std::string_view name = ReductionToOneDevice::name;
};

}  // namespace dist
