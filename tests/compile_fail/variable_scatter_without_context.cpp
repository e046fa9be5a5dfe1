// expect: a variable operation takes the context it is called in
#include <dist/strategy/default.hpp>

int main() {
  dist::Default strategy;
  auto variable = strategy.variable<float>({4});
  const dist::IndexedSlices<float> slices{1, dist::Shape{4}};
#ifdef CONTROL
  variable.scatter_add(strategy.scope(), slices);
#else
  variable.scatter_add(slices);
#endif
}
