// expect: a compiled step has no queue: compute with hlo:: functions on traced arrays, or call strategy.run
#include <dist/tpu.hpp>

int main() {
  dist::Tpu<> strategy;
#ifdef CONTROL
  strategy.run([](auto& replica) { replica.queue().wait(); });
#else
  auto step = strategy.compile([](auto& replica) { replica.queue(); });
  step();
#endif
}
