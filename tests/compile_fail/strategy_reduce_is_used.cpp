// expect: reduce returns the reduction and leaves the values unchanged
// flags: -Werror=unused-result
#include <dist/strategy/default.hpp>

int main() {
  dist::Default strategy;
#ifdef CONTROL
  return static_cast<int>(strategy.reduce(dist::mean, 1.0));
#else
  strategy.reduce(dist::mean, 1.0);
#endif
}
