// expect: a variable needs the type of its elements: strategy.variable<float>(shape)
#include <dist/strategy/default.hpp>

int main() {
  dist::Default strategy;
#ifdef CONTROL
  auto variable = strategy.variable<float>(dist::Shape{2}, 1);
#else
  auto variable = strategy.variable(dist::Shape{2}, 1);
#endif
  return variable.size() == 2 ? 0 : 1;
}
