// expect: all_reduce takes numbers, tensors, contiguous ranges of numbers, and structures of these
#include <string>

#include <dist/strategy/default.hpp>

struct Statistics {
  double total;
#ifdef CONTROL
  float count;
#else
  std::string name;
#endif
};

int main() {
  dist::Default strategy;
  return strategy.run([](auto& replica) { return replica.all_reduce(dist::sum, Statistics{1, {}}).total; }) > 0 ? 0 : 1;
}
