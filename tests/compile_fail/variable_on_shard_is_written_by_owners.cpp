// expect: only the owners of its elements change an OnShard variable
#include <dist/strategy/default.hpp>

int main() {
  dist::Default strategy;
  auto variable = strategy.variable<float, dist::OnShard>({2});
#ifdef CONTROL
  variable.assign(strategy.scope(), 1.0f);
#else
  strategy.run([&](auto& replica) { variable.assign(replica, 1.0f); });
#endif
}
