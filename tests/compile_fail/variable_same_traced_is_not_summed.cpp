// expect: a value that is the same on every replica cannot be summed
#include <dist/tpu.hpp>

int main() {
  dist::Tpu<> strategy;
#ifdef CONTROL
  auto total = strategy.variable<float, dist::OnWrite, dist::Mean>({});
#else
  auto total = strategy.variable<float, dist::OnWrite, dist::Sum>({});
#endif
  auto step = strategy.compile([&](auto& replica, auto x) { total.assign_add(replica, dist::same(x)); });
  step(1.0F);
}
