#pragma once

#include <cstddef>
#include <string_view>

#include <dist/comm/direct/hierarchical_collectives.hpp>
#include <dist/comm/memory/hierarchical_copy_all_reduce.hpp>
#include <dist/device/cuda/buffer.hpp>
#include <dist/device/cuda/device.cuh>

namespace dist {

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

}  // namespace dist
