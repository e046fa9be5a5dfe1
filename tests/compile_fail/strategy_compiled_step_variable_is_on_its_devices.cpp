// expect: a compiled step can use only variables on the devices that it is compiled for: make this one with the strategy that compiles the step
#include <dist/tpu.hpp>

int main() {
  dist::Tpu<> strategy;
#ifdef CONTROL
  auto& maker = strategy;
#else
  dist::OneDevice<dist::Cpu> maker;
#endif
  auto weights = maker.variable<float>({}, 1.0F);
  auto step = strategy.compile([&](auto& replica) { return weights.value(replica); });
  static_cast<void>(step());
}
