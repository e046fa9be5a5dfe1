// expect: a variable cannot have the synchronization None: use OnWrite
#include <dist/strategy/default.hpp>

int main() {
  dist::Default strategy;
#ifdef CONTROL
  const auto variable = strategy.variable<float, dist::Auto, dist::None>({});
#else
  const auto variable = strategy.variable<float, dist::None, dist::Sum>({});
#endif
  return variable.size() == 1 ? 0 : 1;
}
