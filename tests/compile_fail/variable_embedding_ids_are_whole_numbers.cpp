// expect: row indices must be integers: a tensor of them, or a contiguous range
#include <dist/strategy/default.hpp>
#include <dist/variable/embedding.hpp>

#include <vector>

int main() {
  dist::Default strategy;
  const auto table = strategy.variable<float>({4, 2});
#ifdef CONTROL
  const std::vector<int> ids{1};
#else
  const std::vector<float> ids{1};
#endif
  static_cast<void>(dist::embedding_lookup(strategy.scope(), table, ids));
}
