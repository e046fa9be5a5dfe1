// expect: this policy reduces host memory, which these devices do not share
#include <concepts>
#include <dist/comm/memory/thread_all_reduce.hpp>
#include <dist/device/cpu.hpp>
#include <dist/strategy/mirrored.hpp>
#include <span>

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
  using Policy = dist::detail::MirroredPolicy<dist::ThreadAllReduce, Accelerator>;
  return std::same_as<Policy::Checked, dist::ThreadAllReduce> ? 0 : 1;
}
