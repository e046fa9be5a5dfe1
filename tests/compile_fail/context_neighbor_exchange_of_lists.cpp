// expect: neighbor_exchange takes contiguous ranges of elements that can be copied as bytes
#include <list>
#include <vector>

#include <dist/context/subgroup.hpp>
#include <dist/strategy/default.hpp>

int main() {
  dist::Default strategy;
#ifdef CONTROL
  const std::vector<double> row(3);
#else
  const std::list<double> row(3);
#endif
  std::vector<double> halo(3);
  strategy.run([&](auto& replica) { replica.neighbor_exchange({{0, row}}, {{0, halo}}); });
}
