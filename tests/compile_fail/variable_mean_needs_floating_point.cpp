// expect: a variable with aggregation Mean must have a floating-point type: an integer mean would round
#include <dist/strategy/default.hpp>

int main() {
  dist::Default strategy;
#ifdef CONTROL
  const auto mean = strategy.variable<double, dist::OnRead, dist::Mean>({});
#else
  const auto mean = strategy.variable<int, dist::OnRead, dist::Mean>({});
#endif
  return mean.size() == 1 ? 0 : 1;
}
