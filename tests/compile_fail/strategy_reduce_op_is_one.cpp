// expect: this is not a reduction: give dist::sum, dist::mean
// (spec C08)
#include <dist/strategy/default.hpp>

int main() {
  dist::Default strategy;
  const dist::PerReplica<float> values(2);
#ifdef CONTROL
  static_cast<void>(strategy.reduce(dist::sum, values));
#else
  static_cast<void>(strategy.reduce("sum", values));
#endif
}
