// expect: a variable has one synchronization, OnWrite or OnRead, and one aggregation
#include <dist/strategy/default.hpp>

int main() {
  dist::Default strategy;
#ifdef CONTROL
  const auto variable = dist::variable<float, dist::Sum, dist::OnRead>(strategy, {2});
#else
  const auto variable = dist::variable<float, dist::OnWrite, dist::OnRead>(strategy, {2});
#endif
  return variable.size() == 2 ? 0 : 1;
}
