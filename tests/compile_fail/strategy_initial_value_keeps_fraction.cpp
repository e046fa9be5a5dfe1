// expect: a variable of an integer type does not take a floating-point number, whose fraction would be lost
#include <dist/strategy/default.hpp>

int main() {
  dist::Default strategy;
#ifdef CONTROL
  static_cast<void>(strategy.variable<int>({}, 3));
#else
  static_cast<void>(strategy.variable<int>({}, 3.7));
#endif
}
