// expect: weights are a tensor or a contiguous range of floating-point numbers, one for each id
#include <dist/strategy/default.hpp>
#include <dist/variable/embedding.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

int main() {
  dist::Default strategy;
  const auto table = strategy.variable<float>({4, 2});
  const std::vector<std::int64_t> ids{1};
  const std::vector<std::size_t> splits{0, 1};
#ifdef CONTROL
  const std::vector<float> weights{1};
#else
  const std::vector<int> weights{1};
#endif
  static_cast<void>(dist::embedding_lookup_sparse(strategy.scope(), table, dist::IdLists{ids, splits}, weights));
}
