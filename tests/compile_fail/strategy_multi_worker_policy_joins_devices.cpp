// expect: this policy does not connect these devices across processes: use MultiWorker<NcclAllReduce> for GPUs
#include <concepts>
#include <dist/comm/ring_all_reduce.hpp>
#include <dist/device/cpu.hpp>
#include <dist/strategy/multi_worker.hpp>

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
  using Devices = dist::detail::DevicesOfWorkers<dist::RingAllReduce, Accelerator>;
  return std::same_as<Devices::Checked, Accelerator> ? 0 : 1;
}
