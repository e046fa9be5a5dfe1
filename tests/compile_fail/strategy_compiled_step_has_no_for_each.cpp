// expect: a compiled step cannot call a host function for each index: compute with whole traced arrays
#include <dist/tpu.hpp>

int main() {
  dist::Tpu<> strategy;
#ifdef CONTROL
  strategy.run([](auto& replica) { replica.for_each(4, [](std::size_t) {}); });
#else
  auto step = strategy.compile([](auto& replica) { replica.for_each(4, [](std::size_t) {}); });
  step();
#endif
}
