#pragma once

#include <string_view>

#include <dist/comm/direct/direct_collectives.hpp>
#include <dist/comm/memory/reduction_to_one_device.hpp>
#include <dist/device/cuda/device.cuh>

namespace dist {

/// Memory of GPUs is reduced by a kernel of replica 0, which writes the result for all (spec H04).
template <>
struct ReductionToOneDevice::OnDevices<Cuda> : DirectCollectives<Cuda, ReductionToOneDevice, detail::AllOnFirst> {
  static constexpr std::string_view name = ReductionToOneDevice::name;
};

}  // namespace dist
