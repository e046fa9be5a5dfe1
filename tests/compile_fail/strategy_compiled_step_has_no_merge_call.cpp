// expect: merge_call calls a host function for all replicas, which a compiled step cannot do: use the collectives of the replica, or call strategy.run
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
