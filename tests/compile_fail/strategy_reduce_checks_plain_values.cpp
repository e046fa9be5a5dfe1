// expect: this reduction does not combine values of this type: Mean needs a floating-point type
#include <dist/strategy/default.hpp>

int main() {
  dist::Default strategy;
#ifdef CONTROL
  return strategy.reduce(dist::mean, 3.0) > 0 ? 1 : 0;
#else
  return strategy.reduce(dist::mean, 3);
#endif
}
