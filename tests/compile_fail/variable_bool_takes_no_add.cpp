// expect: a bool variable can only be assigned
#include <dist/strategy/default.hpp>

int main() {
  dist::Default strategy;
  auto variable = strategy.variable<bool>({});
#ifdef CONTROL
  variable.assign(strategy.scope(), true);
#else
  variable.assign_add(strategy.scope(), true);
#endif
}
