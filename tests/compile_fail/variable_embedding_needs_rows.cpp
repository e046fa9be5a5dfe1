// expect: an embedding table must be a variable that has rows: a DistributedVariable, a ShardedVariable
#include <dist/strategy/default.hpp>
#include <dist/variable/embedding.hpp>

#include <vector>

int main() {
  dist::Default strategy;
#ifdef CONTROL
  const auto table = strategy.variable<float>({4, 2});
#else
  const dist::Tensor<float> table{{4, 2}};
#endif
  const std::vector<int> ids{1};
  static_cast<void>(dist::embedding_lookup(strategy.scope(), table, ids));
}
