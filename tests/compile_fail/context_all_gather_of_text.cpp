// expect: all_gather takes tensors and contiguous ranges of numbers
#include <string>
#include <vector>

#include <dist/strategy/default.hpp>

int main() {
  dist::Default strategy;
  strategy.run([](auto& replica) {
#ifdef CONTROL
    const std::vector<int> mine{1, 2};
#else
    const std::vector<std::string> mine{"1", "2"};
#endif
    return replica.all_gather(mine, 0).size();
  });
}
