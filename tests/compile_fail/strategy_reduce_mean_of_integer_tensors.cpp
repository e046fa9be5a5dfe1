// expect: this reduction does not combine values of this type: Mean needs a floating-point type
#include <dist/strategy/default.hpp>

int main() {
  dist::Default strategy;
#ifdef CONTROL
  const dist::PerReplica<dist::Tensor<float>> values(2);
#else
  const dist::PerReplica<dist::Tensor<int>> values(2);
#endif
  return strategy.reduce(dist::mean, values).size() == 0 ? 0 : 1;
}
