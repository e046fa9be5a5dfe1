// expect: an OnShard variable takes no scatter operations
#include <dist/strategy/default.hpp>

#ifdef CONTROL
using Synchronization = dist::OnWrite;
#else
using Synchronization = dist::OnShard;
#endif

int main() {
  dist::Default strategy;
  auto variable = strategy.variable<float, Synchronization>({2});
  variable.scatter_add(strategy.scope(), dist::IndexedSlices<float>{1, {2}});
}
