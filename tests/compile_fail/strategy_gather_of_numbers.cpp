// expect: gather takes tensors, and structures of these; a number has no axis: return a tensor of shape [1]
#include <dist/strategy/default.hpp>

int main() {
  dist::Default strategy;
#ifdef CONTROL
  const dist::PerReplica<dist::Tensor<int>> values(2);
#else
  const dist::PerReplica<int> values(2);
#endif
  static_cast<void>(strategy.gather(values, 0));
}
