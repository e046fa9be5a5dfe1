// expect: a scatter operation takes slices of the variable's own element type
#include <dist/strategy/default.hpp>

int main() {
  dist::Default strategy;
  auto variable = strategy.variable<float>({3});
#ifdef CONTROL
  variable.scatter_add(strategy.scope(), dist::IndexedSlices<float>{1, {3}});
#else
  variable.scatter_add(strategy.scope(), dist::IndexedSlices<double>{1, {3}});
#endif
}
