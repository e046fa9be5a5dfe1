// expect: min and max of a struct, pair or tuple would combine each member separately
#include <array>
#include <utility>

#include <dist/strategy/default.hpp>

int main() {
  dist::Default strategy;
#ifdef CONTROL
  static_cast<void>(strategy.reduce(dist::min, std::array{1, 2}));
#else
  static_cast<void>(strategy.reduce(dist::min, std::pair{1, 2.0f}));
#endif
}
