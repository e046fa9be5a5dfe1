// expect: a Generator needs a strategy as its first argument
#include <dist/strategy/default.hpp>
#include <dist/variable/generator.hpp>

int main() {
  dist::Default strategy;
#ifdef CONTROL
  dist::Generator random{strategy, 42};
#else
  dist::Generator random{42};
#endif
  return random.uniform(strategy.scope()) < 1 ? 0 : 1;
}
