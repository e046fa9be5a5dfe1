// expect: this is memory of a device, which the host cannot touch: give the work to replica.for_each
#include <cstddef>
#include <dist/core/memory_space.hpp>

struct Elsewhere {
#ifdef CONTROL
  static constexpr bool host_accessible = true;
#else
  static constexpr bool host_accessible = false;
#endif
};

int main() {
  int number = 0;
  const std::size_t one = 1;
  const dist::SpanIn<int, Elsewhere> span{&number, one};
  return span[0];
}
