// expect: an embedding table must have floating-point elements: read rows of other tables with gather
#include <dist/strategy/default.hpp>
#include <dist/variable/embedding.hpp>

#include <vector>

int main() {
  dist::Default strategy;
#ifdef CONTROL
  const auto table = strategy.variable<float>({4, 2});
#else
  const auto table = strategy.variable<int>({4, 2});
#endif
  const std::vector<int> ids{1};
  static_cast<void>(dist::embedding_lookup(strategy.scope(), table, ids));
}
