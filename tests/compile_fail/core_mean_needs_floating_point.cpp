// expect: this reduction does not combine values of this type: Mean needs a floating-point type
#include <dist/device/cpu.hpp>

int main() {
#ifdef CONTROL
  return dist::Cpu::Queue::transform_reduce(dist::mean, {0, 4}, [](auto i) { return static_cast<double>(i); }) == 1.5
             ? 0
             : 1;
#else
  return dist::Cpu::Queue::transform_reduce(dist::mean, {0, 4}, [](auto i) { return static_cast<int>(i); }) == 1 ? 0
                                                                                                                 : 1;
#endif
}
