// expect: bools are not added: give a bool variable the aggregation None or OnlyFirstReplica
#include <dist/strategy/default.hpp>

int main() {
  dist::Default strategy;
#ifdef CONTROL
  const auto variable = strategy.variable<bool, dist::OnWrite, dist::OnlyFirstReplica>({});
#else
  const auto variable = strategy.variable<bool, dist::OnWrite, dist::Sum>({});
#endif
  return variable.size() == 1 ? 0 : 1;
}
