// expect: a bool is not a number: write a bool variable with a bool
#include <dist/strategy/default.hpp>

int main() {
  dist::Default strategy;
  auto variable = strategy.variable<bool>({});
#ifdef CONTROL
  variable.assign(strategy.scope(), false);
#else
  variable.assign(strategy.scope(), 0);
#endif
}
