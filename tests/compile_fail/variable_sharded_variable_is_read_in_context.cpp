// expect: a variable operation takes the context it is called in
#include <dist/strategy/default.hpp>
#include <dist/variable/make_sharded_variable.hpp>

int main() {
  dist::Default strategy;
  const auto table = dist::sharded_variable<float>(strategy, dist::FixedShards{2}, {4, 2});
#ifdef CONTROL
  static_cast<void>(table.read(strategy.scope()));
#else
  static_cast<void>(table.read());
#endif
}
