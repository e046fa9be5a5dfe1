// expect: HierarchicalCopyAllReduce of GPU memory needs a separate header: include <dist/comm/cuda/policies.cuh>
// only error
#include <concepts>
#include <dist/comm/memory/hierarchical_copy_all_reduce.hpp>
#include <dist/device/cpu.hpp>
#include <dist/strategy/mirrored.hpp>

struct Accelerator : dist::Cpu {
  struct Space {
#ifdef CONTROL
    static constexpr bool host_accessible = true;
#else
    static constexpr bool host_accessible = false;
#endif
  };
};

int main() {
  using Policy = dist::detail::MirroredPolicy<dist::HierarchicalCopyAllReduce, Accelerator>;
  return std::same_as<Policy::Checked, dist::HierarchicalCopyAllReduce> ? 0 : 1;
}
