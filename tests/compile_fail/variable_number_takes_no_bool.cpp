// expect: a bool is not a number: write a bool variable with a bool, and a number with a number
#include <dist/strategy/default.hpp>

int main() {
  dist::Default strategy;
  auto variable = strategy.variable<float>({});
#ifdef CONTROL
  variable.assign(strategy.scope(), 1);
#else
  variable.assign(strategy.scope(), true);
#endif
}
