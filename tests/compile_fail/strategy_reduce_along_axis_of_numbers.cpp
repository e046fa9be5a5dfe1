// expect: reduce along an axis takes tensors, and structures of these; a number has no axis: leave the axis out
#include <dist/strategy/default.hpp>

int main() {
  dist::Default strategy;
  const dist::PerReplica<int> values(2);
#ifdef CONTROL
  return strategy.reduce(dist::sum, values);
#else
  return strategy.reduce(dist::sum, values, 0);
#endif
}
