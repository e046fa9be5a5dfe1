// expect: a compiled step has no memory to access: read(replica) returns the elements as a traced array
#include <dist/tpu.hpp>

int main() {
  dist::Tpu<> strategy;
  auto weights = strategy.variable<float, dist::OnWrite, dist::Mean>({2}, 1.0F);
  auto step = strategy.compile([&](auto& replica) {
#ifdef CONTROL
    static_cast<void>(weights.read(replica));
#else
    static_cast<void>(weights.component(replica));
#endif
  });
  step();
}
