// expect: a variable is not written with a PerReplica: strategy.update gives each copy its own value
// (spec G22)
#include <dist/strategy/default.hpp>

int main() {
  dist::Default strategy;
  auto variable = strategy.variable<float>({});
  const dist::PerReplica<float> values(1);
#ifdef CONTROL
  variable.assign(strategy.scope(), values[0]);
#else
  variable.assign(strategy.scope(), values);
#endif
}
