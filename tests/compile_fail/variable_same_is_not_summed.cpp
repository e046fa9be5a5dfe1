// expect: a value that is the same on every replica cannot be summed
#include <dist/strategy/default.hpp>

int main() {
  dist::Default strategy;
#ifdef CONTROL
  auto variable = strategy.variable<float, dist::OnWrite, dist::Mean>({});
#else
  auto variable = strategy.variable<float, dist::OnWrite, dist::Sum>({});
#endif
  strategy.run([&](auto& replica) { variable.assign_add(replica, dist::same(5)); });
}
