// expect: this policy connects devices of another type than MultiWorker<Ops, Device> names: leave out the device
#include <concepts>
#include <dist/device/cpu.hpp>
#include <dist/strategy/multi_worker.hpp>
#include <string_view>

struct Accelerator : dist::Cpu {};
struct AcceleratedAllReduce {
  static constexpr std::string_view name = "AcceleratedAllReduce";
  using DefaultDevice = Accelerator;
  struct StateOfWorkers {};
};

int main() {
#ifdef CONTROL
  using Device = dist::detail::DefaultDevice<AcceleratedAllReduce, dist::Cpu>;
#else
  using Device = dist::Cpu;
#endif
  using Devices = dist::detail::DevicesOfWorkers<AcceleratedAllReduce, Device>;
  return std::same_as<Devices::Checked, Accelerator> ? 0 : 1;
}
