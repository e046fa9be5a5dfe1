// expect: bitwise reductions need an integer type
#include <dist/device/cpu.hpp>

int main() {
#ifdef CONTROL
  return dist::Cpu::Queue::transform_reduce(dist::bit_or, {0, 4}, [](auto i) { return i; }) == 3 ? 0 : 1;
#else
  return dist::Cpu::Queue::transform_reduce(dist::bit_or, {0, 4}, [](auto i) { return static_cast<float>(i); }) == 3
             ? 0
             : 1;
#endif
}
