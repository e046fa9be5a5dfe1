// expect: Tpu needs devices that steps can be compiled for: use dist::Tpu<>, or Mirrored<ThreadAllReduce> with these devices
#include <dist/tpu.hpp>

int main() {
#ifdef CONTROL
  dist::Tpu strategy{2};
#else
  dist::Tpu<dist::Cpu> strategy{2};
#endif
  return strategy.num_replicas_in_sync() == 2 ? 0 : 1;
}
