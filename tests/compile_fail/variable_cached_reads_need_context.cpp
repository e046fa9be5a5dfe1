// expect: CachedReads are made from the context of a replica function or from strategy.scope()
#include <dist/strategy/default.hpp>

int main() {
  dist::Default strategy;
#ifdef CONTROL
  const auto context = strategy.scope();
  const dist::CachedReads cached{context};
#else
  const dist::CachedReads cached{strategy};
#endif
  return strategy.variable<float>({}).value(cached) > 0 ? 1 : 0;
}
