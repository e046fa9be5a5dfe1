// expect: neighbor_exchange writes what it receives, and these elements are constant
#include <vector>

#include <dist/context/subgroup.hpp>
#include <dist/strategy/default.hpp>

int main() {
  dist::Default strategy;
#ifdef CONTROL
  std::vector<double> halo(3);
#else
  const std::vector<double> halo(3);
#endif
  const std::vector<double> row(3);
  strategy.run([&](auto& replica) { replica.neighbor_exchange({{0, row}}, {{0, halo}}); });
}
