// expect: a ShardedVariable is made of variables, which have elements, a name and a shape
// (spec K05)
#include <dist/strategy/default.hpp>
#include <dist/variable/sharded_variable.hpp>

#include <utility>
#include <vector>

int main() {
  dist::Default strategy;
#ifdef CONTROL
  std::vector<decltype(strategy.variable<float>({2}))> shards;
  shards.push_back(strategy.variable<float>({2}));
#else
  std::vector<dist::Tensor<float>> shards{dist::Tensor<float>{{2}}};
#endif
  const dist::ShardedVariable variable{std::move(shards)};
}
