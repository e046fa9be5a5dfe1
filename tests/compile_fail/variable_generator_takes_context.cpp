// expect: a Generator takes the context it is called in
#include <dist/strategy/default.hpp>
#include <dist/variable/generator.hpp>

int main() {
  dist::Default strategy;
  dist::Generator random{strategy, 1};
#ifdef CONTROL
  return random.uniform(strategy.scope()) < 1 ? 0 : 1;
#else
  return random.uniform(strategy) < 1 ? 0 : 1;
#endif
}
