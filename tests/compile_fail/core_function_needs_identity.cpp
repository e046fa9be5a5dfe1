// expect: a function is a reduction only together with its identity
#include <functional>

#include <dist/strategy/default.hpp>

int main() {
  dist::Default strategy;
  strategy.run([&](auto& replica) {
#ifdef CONTROL
    static_cast<void>(replica.all_reduce(dist::reduction(std::multiplies<>{}, 1), 2.0f));
#else
    static_cast<void>(replica.all_reduce(std::multiplies<>{}, 2.0f));
#endif
  });
}
