// expect: scatter_min, scatter_max and scatter_update work with aggregation None or OnlyFirstReplica
#include <dist/strategy/default.hpp>

int main() {
  dist::Default strategy;
#ifdef CONTROL
  auto variable = strategy.variable<float, dist::OnWrite, dist::OnlyFirstReplica>({3});
#else
  auto variable = strategy.variable<float, dist::OnWrite, dist::Sum>({3});
#endif
  variable.scatter_max(strategy.scope(), dist::IndexedSlices<float>{1, {3}});
}
