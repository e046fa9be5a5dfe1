// expect: an OnRead variable with aggregation None has no value outside replica functions
#include <dist/strategy/default.hpp>

int main() {
  dist::Default strategy;
  const auto variable = strategy.variable<float, dist::OnRead, dist::None>({});
#ifdef CONTROL
  return strategy.run([&](auto& replica) { return variable.value(replica); }) > 0 ? 1 : 0;
#else
  return variable.value(strategy.scope()) > 0 ? 1 : 0;
#endif
}
