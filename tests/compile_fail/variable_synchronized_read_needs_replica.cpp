// expect: a synchronized read must be in a replica function
#include <dist/strategy/default.hpp>

int main() {
  dist::Default strategy;
  const auto variable = strategy.variable<float, dist::OnRead, dist::Sum>({});
#ifdef CONTROL
  static_cast<void>(variable.read(strategy.scope()));
#else
  static_cast<void>(variable.synchronized_read(strategy.scope()));
#endif
}
