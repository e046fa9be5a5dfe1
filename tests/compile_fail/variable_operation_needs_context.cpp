// expect: a variable operation takes the context it is called in
#include <dist/strategy/default.hpp>

int main() {
  dist::Default strategy;
  const auto variable = strategy.variable<float>({});
#ifdef CONTROL
  return variable.value(strategy.scope()) > 0 ? 1 : 0;
#else
  return variable.value(strategy) > 0 ? 1 : 0;
#endif
}
