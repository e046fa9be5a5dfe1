#pragma once

#include <string_view>

#include <dist/comm/direct/direct_collectives.hpp>
#include <dist/device/cuda/device.cuh>

namespace dist {

/// Replicas reduce each other's memory by kernels, on GPUs with peer access, several of which may share one GPU. Sums are
/// made in rank order, so the bits are those of SharedMemoryAllReduce on Cpu where the GPU's arithmetic rounds as the
/// host's does.
struct DirectAllReduce {
  static constexpr std::string_view name = "DirectAllReduce";
  template <class D>
  using State = DirectCollectives<Cuda>::State<D>;
  template <class C>
  using On = DirectCollectives<Cuda>::On<C>;
};

}  // namespace dist
