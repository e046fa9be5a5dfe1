// expect: a variable operation takes the context it is called in
#include <dist/strategy/default.hpp>

int main() {
  dist::Default strategy;
  const auto variable = strategy.variable<float>({});
#ifdef CONTROL
  static_cast<void>(variable.read(strategy.scope()));
#else
  static_cast<void>(variable.read());
#endif
}
