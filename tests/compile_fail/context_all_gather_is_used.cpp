// expect: all_gather returns the values of all replicas
// flags: -Werror=unused-result
#include <vector>

#include <dist/strategy/default.hpp>

int main() {
  dist::Default strategy;
  strategy.run([](auto& replica) {
    std::vector<double> mine(2);
#ifdef CONTROL
    const auto all = replica.all_gather(mine, 0);
    return all.size();
#else
    replica.all_gather(mine, 0);
    return mine.size();
#endif
  });
}
