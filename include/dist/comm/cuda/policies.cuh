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

/// Replicas reduce each other's memory by kernels, on GPUs with peer access, several of which may share one GPU. Sums are
/// made in rank order, so the bits are those of ThreadAllReduce on Cpu where the GPU's arithmetic rounds as the
/// host's does.
struct DirectAllReduce {
  static constexpr std::string_view name = "DirectAllReduce";
  template <class D>
  using State = DirectCollectives<Cuda>::State<D>;
  template <class C>
  using On = DirectCollectives<Cuda>::On<C>;
};

namespace cuda {
/// Where a GPU keeps what it combines for its group.
struct GroupBuffer : DeviceBuffer {
  /// Throws OutOfMemory.
  GroupBuffer(const Queue& queue, std::size_t bytes) : DeviceBuffer(queue.stream().device(), bytes) {}
};
}  // namespace cuda

/// Memory of GPUs is reduced by kernels: in each group one GPU combines the group's values, then reads what the other
/// group has and writes the result to its own (spec H06).
template <>
struct HierarchicalCopyAllReduce::OnDevices<Cuda> : HierarchicalCollectives<Cuda, cuda::GroupBuffer> {
  static constexpr std::string_view name = HierarchicalCopyAllReduce::name;
};

/// Memory of GPUs is reduced by a kernel of replica 0, which writes the result for all (spec H04).
template <>
struct ReductionToOneDevice::OnDevices<Cuda> : DirectCollectives<Cuda, ReductionToOneDevice, detail::AllOnFirst> {
  static constexpr std::string_view name = ReductionToOneDevice::name;
};

}  // namespace dist
