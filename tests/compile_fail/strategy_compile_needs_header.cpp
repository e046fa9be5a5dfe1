// expect: steps for these devices are compiled by <dist/strategy/compiled_step.hpp>: include it
#include <dist/device/pjrt/xla.hpp>
#include <dist/strategy/one_device.hpp>
#ifdef CONTROL
#include <dist/strategy/compiled_step.hpp>
#endif

int main() {
  dist::OneDevice<dist::Xla> strategy;
  auto step = strategy.compile([](auto&) {});
  step();
}
