// expect: your own reduction needs an identity, a call operator and a finish function for it
#include <dist/core/reduce_op.hpp>
#include <dist/strategy/default.hpp>

struct Largest : dist::Max {
#ifndef CONTROL
  template <class T>
  static constexpr T identity = T{0};
  template <class T>
  void operator()(T, T) const {}
#endif
};

int main() {
  dist::Default strategy;
  strategy.run([](auto& replica) { return replica.all_reduce(Largest{}, 1.0f); });
}
