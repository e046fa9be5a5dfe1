// expect: a variable with aggregation None cannot be written in a replica function under a strategy such as CentralStorage
#include <dist/strategy/central_storage.hpp>

int main() {
  dist::CentralStorage<dist::Cpu> strategy{2};
#ifdef CONTROL
  auto variable = strategy.variable<float, dist::OnWrite, dist::Sum>({3});
#else
  auto variable = strategy.variable<float>({3});
#endif
  const dist::IndexedSlices<float> slices{1, {3}};
  strategy.run([&](auto& replica) { variable.scatter_add(replica, slices); });
}
