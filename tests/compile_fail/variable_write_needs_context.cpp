// expect: a variable operation takes the context it is called in
#include <dist/strategy/default.hpp>

int main() {
  dist::Default strategy;
  auto variable = strategy.variable<float>({});
#ifdef CONTROL
  variable.assign(strategy.scope(), 1.0f);
#else
  variable.assign(strategy, 1.0f);
#endif
}
