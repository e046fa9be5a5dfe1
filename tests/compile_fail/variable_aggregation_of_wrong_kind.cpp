// expect: a variable's aggregation is None, Sum, Mean or OnlyFirstReplica
#include <dist/strategy/default.hpp>

int main() {
  dist::Default strategy;
#ifdef CONTROL
  const auto variable = strategy.variable<float, dist::OnRead, dist::OnlyFirstReplica>({});
#else
  const auto variable = strategy.variable<float, dist::OnRead, dist::Max>({});
#endif
  return variable.size() == 1 ? 0 : 1;
}
