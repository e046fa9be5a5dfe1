// expect: this reduction does not combine values of this type: Mean needs a floating-point type
#include <dist/strategy/default.hpp>

int main() {
  dist::Default strategy;
  return strategy.run([](auto& context) {
#ifdef CONTROL
    return context.all_reduce(dist::mean, 3.0) == 3.0 ? 0 : 1;
#else
    return context.all_reduce(dist::mean, 3) == 3 ? 0 : 1;
#endif
  });
}
