// expect: a slice consists of integers, Range, ellipsis and new_axis
// (spec K09)
#include <dist/strategy/default.hpp>
#include <dist/variable/make_sharded_variable.hpp>

int main() {
  dist::Default strategy;
  const auto table = dist::sharded_variable<float>(strategy, dist::FixedShards{2}, {4, 2});
#ifdef CONTROL
  static_cast<void>(table.slice(strategy.scope(), -1, dist::Range{1}));
#else
  static_cast<void>(table.slice(strategy.scope(), dist::Tensor<int>{{2}, {0, 1}}));
#endif
}
