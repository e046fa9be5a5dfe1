// expect: a variable operation takes the context it is called in
#include <dist/strategy/default.hpp>

int main() {
  dist::Default strategy;
  auto variable = strategy.variable<float>({});
#ifdef CONTROL
  variable.assign_add(strategy.scope(), 3);
#else
  variable.assign_add(3);
#endif
}
