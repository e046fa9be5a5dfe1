// expect: CachedReads cannot be nested or copied
#include <dist/strategy/default.hpp>

int main() {
  dist::Default strategy;
  const auto context = strategy.scope();
  const dist::CachedReads outer{context};
#ifdef CONTROL
  const dist::CachedReads inner{context};
#else
  const dist::CachedReads inner{outer};
#endif
  return strategy.variable<float>({}).value(inner) > 0 ? 1 : 0;
}
