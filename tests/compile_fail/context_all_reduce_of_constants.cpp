// expect: all_reduce of a range is in place, and these elements are constant: reduce a copy
#include <vector>

#include <dist/strategy/default.hpp>

int main() {
  dist::Default strategy;
#ifdef CONTROL
  std::vector<float> values{1, 2};
#else
  const std::vector<float> values{1, 2};
#endif
  strategy.run([&](auto& replica) { replica.all_reduce(dist::sum, values); });
}
