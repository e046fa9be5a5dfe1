// expect: CachedReads cannot write: give the write the context that the CachedReads were made from
#include <dist/strategy/default.hpp>

int main() {
  dist::Default strategy;
  auto variable = strategy.variable<float>({});
  const auto context = strategy.scope();
  const dist::CachedReads cached{context};
#ifdef CONTROL
  variable.assign(context, 1);
#else
  variable.assign(cached, 1);
#endif
}
