// expect: component(context) needs the context of a replica function or of strategy.update
#include <dist/strategy/default.hpp>

int main() {
  dist::Default strategy;
  const auto variable = strategy.variable<float>({});
#ifdef CONTROL
  return variable.component(strategy.scope(), 0).size() == 1 ? 0 : 1;
#else
  return variable.component(strategy.scope()).size() == 1 ? 0 : 1;
#endif
}
