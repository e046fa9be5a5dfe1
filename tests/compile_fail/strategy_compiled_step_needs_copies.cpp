// expect: a compiled step needs a copy of every variable on each device, and this strategy keeps one for all: use dist::Tpu<> or Mirrored<XlaAllReduce>
#include <dist/strategy/central_storage.hpp>
#include <dist/tpu.hpp>

int main() {
#ifdef CONTROL
  dist::Tpu<> strategy;
#else
  dist::CentralStorage<dist::Xla> strategy;
#endif
  auto step = strategy.compile([](auto&) {});
  step();
}
