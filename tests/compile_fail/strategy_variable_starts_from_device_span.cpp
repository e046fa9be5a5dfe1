// expect: this is memory of a device, which the host cannot touch: give the work to replica.for_each
// only error
#include <dist/dist.hpp>

#ifdef CONTROL
using Elsewhere = dist::HostMemory;
#else
struct Elsewhere {
  static constexpr bool host_accessible = false;
};
#endif

int main() {
  float number = 1;
  const dist::SpanIn<float, Elsewhere> span{&number, 1};
  dist::Default strategy;
  static_cast<void>(strategy.variable<float>({1}, span));
}
