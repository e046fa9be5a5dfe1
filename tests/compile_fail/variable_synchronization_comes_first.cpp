// expect: a variable's synchronization is Auto, OnWrite or OnRead: name one of them before the aggregation
#include <dist/strategy/default.hpp>

int main() {
  dist::Default strategy;
#ifdef CONTROL
  const auto variable = strategy.variable<float, dist::OnWrite, dist::Sum>({});
#else
  const auto variable = strategy.variable<float, dist::Sum>({});
#endif
  return variable.size() == 1 ? 0 : 1;
}
