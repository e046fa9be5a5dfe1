// expect: a scatter operation takes IndexedSlices or a view of them
// (spec K07)
#include <dist/strategy/default.hpp>
#include <dist/variable/make_sharded_variable.hpp>

int main() {
  dist::Default strategy;
  auto table = dist::sharded_variable<float>(strategy, dist::FixedShards{2}, {4, 2});
#ifdef CONTROL
  table.scatter_add(strategy.scope(), dist::IndexedSlices<float>{1, {4, 2}});
#else
  table.scatter_add(strategy.scope(), dist::Tensor<float>{{4, 2}});
#endif
}
