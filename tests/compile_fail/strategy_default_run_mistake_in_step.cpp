// expect: no member named 'all_redcue'
// only error
#include <dist/strategy/default.hpp>

int main() {
  dist::Default strategy;
#ifdef CONTROL
  const int result = strategy.run([](auto& replica, int mine) { return replica.all_reduce(dist::sum, mine); }, 1);
#else
  const int result = strategy.run([](auto& replica, int mine) { return replica.all_redcue(dist::sum, mine); }, 1);
#endif
  return result == 1 ? 0 : 1;
}
