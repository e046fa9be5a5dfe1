// expect: merge_call calls a function of the host for all replicas, which no program on devices can: use the collectives of the replica, or call strategy.run
#include <dist/tpu.hpp>

int main() {
  dist::Tpu<> strategy;
#ifdef CONTROL
  strategy.run([](auto& replica) { replica.merge_call([](auto&) {}); });
#else
  auto step = strategy.compile([](auto& replica) { replica.merge_call([](auto&) {}); });
  step();
#endif
}
