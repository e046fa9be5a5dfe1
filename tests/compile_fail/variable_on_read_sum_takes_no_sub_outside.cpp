// expect: an OnRead variable with aggregation Sum takes no assign_add or assign_sub outside replica functions
#include <dist/strategy/default.hpp>

int main() {
  dist::Default strategy;
  auto total = strategy.variable<float, dist::OnRead, dist::Sum>({});
#ifdef CONTROL
  strategy.run([&](auto& replica) { total.assign_sub(replica, 1.0f); });
#else
  total.assign_sub(strategy.scope(), 1.0f);
#endif
}
