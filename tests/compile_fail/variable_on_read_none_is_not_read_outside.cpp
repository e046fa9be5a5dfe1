// expect: an OnRead variable with aggregation None has no value outside replica functions
#include <dist/strategy/default.hpp>

int main() {
  dist::Default strategy;
#ifdef CONTROL
  const auto variable = strategy.variable<float, dist::OnRead, dist::OnlyFirstReplica>({});
#else
  const auto variable = strategy.variable<float, dist::OnRead, dist::None>({});
#endif
  return variable.read(strategy.scope())[0] > 0 ? 1 : 0;
}
