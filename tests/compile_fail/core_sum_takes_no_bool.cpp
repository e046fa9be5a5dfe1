// expect: Sum and Prod do not take bool
#include <dist/device/cpu.hpp>

int main() {
#ifdef CONTROL
  return dist::Cpu::Queue::transform_reduce(dist::sum, {0, 4}, [](auto i) { return i > 1 ? 1 : 0; }) == 2 ? 0 : 1;
#else
  return dist::Cpu::Queue::transform_reduce(dist::sum, {0, 4}, [](auto i) { return i > 1; }) == 2 ? 0 : 1;
#endif
}
