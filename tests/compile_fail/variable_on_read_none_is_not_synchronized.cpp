// expect: an OnRead variable with aggregation None has no synchronized value
#include <dist/strategy/default.hpp>

int main() {
  dist::Default strategy;
#ifdef CONTROL
  const auto variable = strategy.variable<float, dist::OnRead, dist::Sum>({});
#else
  const auto variable = strategy.variable<float, dist::OnRead, dist::None>({});
#endif
  strategy.run([&](auto& replica) { static_cast<void>(variable.synchronized_value(replica)); });
}
