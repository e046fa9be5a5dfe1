// expect: an OnRead variable takes no scatter operations
// (spec G28)
#include <dist/strategy/default.hpp>

int main() {
  dist::Default strategy;
#ifdef CONTROL
  auto variable = strategy.variable<float, dist::OnWrite, dist::Sum>({3});
#else
  auto variable = strategy.variable<float, dist::OnRead, dist::Sum>({3});
#endif
  variable.scatter_add(strategy.scope(), dist::IndexedSlices<float>{1, {3}});
}
