// expect: a variable of an integer type does not take a floating-point number, whose fraction would be lost
#include <dist/strategy/default.hpp>

int main() {
  dist::Default strategy;
  auto variable = strategy.variable<int>({});
#ifdef CONTROL
  variable.assign(strategy.scope(), 3);
#else
  variable.assign(strategy.scope(), 3.7);
#endif
}
