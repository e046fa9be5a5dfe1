// expect: an OnShard variable has the aggregation None
#include <dist/strategy/default.hpp>

int main() {
  dist::Default strategy;
#ifdef CONTROL
  const auto variable = strategy.variable<float, dist::OnShard, dist::None>({2});
#else
  const auto variable = strategy.variable<float, dist::OnShard, dist::Sum>({2});
#endif
  return variable.size() == 2 ? 0 : 1;
}
