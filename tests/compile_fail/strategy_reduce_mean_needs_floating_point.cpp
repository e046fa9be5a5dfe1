// expect: this reduction does not combine values of this type: Mean needs a floating-point type
#include <dist/strategy/default.hpp>

int main() {
  dist::Default strategy;
#ifdef CONTROL
  const dist::PerReplica<double> values(2);
#else
  const dist::PerReplica<int> values(2);
#endif
  return strategy.reduce(dist::mean, values) > 0 ? 1 : 0;
}
