// expect: a write goes to the store: give it the context that the CachedReads were made from
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
