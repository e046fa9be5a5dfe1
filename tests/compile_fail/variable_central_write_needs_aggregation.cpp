// expect: a variable with aggregation None cannot be written in a replica function under a strategy such as CentralStorage
#include <dist/strategy/central_storage.hpp>

int main() {
  dist::CentralStorage<dist::Cpu> strategy{2};
#ifdef CONTROL
  auto variable = strategy.variable<float, dist::OnWrite, dist::Mean>({});
#else
  auto variable = strategy.variable<float, dist::OnWrite, dist::None>({});
#endif
  strategy.run([&](auto& replica) { variable.assign(replica, 1.0f); });
}
