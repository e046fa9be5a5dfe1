// expect: an OnRead variable with aggregation Sum takes no assign_add or assign_sub outside replica functions
#include <dist/strategy/default.hpp>

int main() {
  dist::Default strategy;
  auto total = strategy.variable<float, dist::OnRead, dist::Sum>({});
#ifdef CONTROL
  total.assign(strategy.scope(), 1.0f);
  strategy.run([&](auto& replica) { total.assign_add(replica, 1.0f); });
#else
  total.assign_add(strategy.scope(), 1.0f);
#endif
}
