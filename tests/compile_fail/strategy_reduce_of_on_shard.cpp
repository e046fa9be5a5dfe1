// expect: an OnShard variable has only one value for each element: read the variable instead
#include <dist/strategy/default.hpp>

#ifdef CONTROL
using Synchronization = dist::OnWrite;
#else
using Synchronization = dist::OnShard;
#endif

int main() {
  dist::Default strategy;
  const auto variable = strategy.variable<float, Synchronization>({2});
  return strategy.reduce(dist::mean, variable)[0] == 0.0f ? 0 : 1;
}
