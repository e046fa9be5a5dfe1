// expect: row indices must be integers: a tensor of them, or a contiguous range
// (spec K08)
#include <dist/strategy/default.hpp>
#include <dist/variable/make_sharded_variable.hpp>

#include <vector>

int main() {
  dist::Default strategy;
  const auto table = dist::sharded_variable<float>(strategy, dist::FixedShards{2}, {4, 2});
#ifdef CONTROL
  const std::vector<int> ids{1, 2};
#else
  const std::vector<float> ids{1, 2};
#endif
  static_cast<void>(table.gather(strategy.scope(), ids));
}
