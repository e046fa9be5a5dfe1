// expect: gather returns the values of all replicas
// flags: -Werror=unused-result
#include <dist/strategy/default.hpp>

int main() {
  dist::Default strategy;
  const dist::Tensor<float> mine{dist::Shape{2}};
#ifdef CONTROL
  return static_cast<int>(strategy.gather(mine, 0).size());
#else
  strategy.gather(mine, 0);
#endif
}
