#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <string_view>

#include <dist/comm/direct/direct_collectives.hpp>
#include <dist/comm/direct/hierarchical_collectives.hpp>
#include <dist/comm/memory/hierarchical_copy_all_reduce.hpp>
#include <dist/comm/memory/reduction_to_one_device.hpp>
#include <support/guarded_device.hpp>

namespace testing {

/// Device memory for the combined values of a group.
class GuardedBuffer {
 public:
  GuardedBuffer(const GuardedDevice::Queue&, std::size_t bytes) : offset_(memory_.allocate(bytes)) { ++made; }
  [[nodiscard]] std::byte* data() const noexcept { return memory_.at(0, offset_); }

  static inline std::atomic<std::size_t> made = 0;

 private:
  GuardedDevice::Memory memory_{std::array<std::size_t, 1>{0}};
  std::size_t offset_;
};

}  // namespace testing

template <>
struct dist::ReductionToOneDevice::OnDevices<testing::GuardedDevice>
    : DirectCollectives<testing::GuardedDevice, ReductionToOneDevice, detail::AllOnFirst> {
  static constexpr std::string_view name = ReductionToOneDevice::name;
};

template <>
struct dist::HierarchicalCopyAllReduce::OnDevices<testing::GuardedDevice>
    : HierarchicalCollectives<testing::GuardedDevice, testing::GuardedBuffer> {
  static constexpr std::string_view name = HierarchicalCopyAllReduce::name;
};
