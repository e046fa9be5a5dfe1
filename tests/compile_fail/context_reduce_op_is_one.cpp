// expect: this is not a reduction: give dist::sum, dist::mean
#include <dist/strategy/default.hpp>

int main() {
  dist::Default strategy;
  strategy.run([](auto& replica) {
#ifdef CONTROL
    return replica.all_reduce(dist::max, 1.0f);
#else
    return replica.all_reduce(2, 1.0f);
#endif
  });
}
