// expect: a sharded variable's initial value must be a number, a TensorView of its element type
// (spec J07)
#include <dist/strategy/default.hpp>
#include <dist/variable/make_sharded_variable.hpp>

int main() {
  dist::Default strategy;
#ifdef CONTROL
  const auto fill = [](dist::TensorView<float> part, dist::IndexRange rows) {
    part[0] = static_cast<float>(rows.begin);
  };
#else
  const auto fill = [](int) {};
#endif
  static_cast<void>(dist::sharded_variable<float>(strategy, dist::FixedShards{2}, {4, 2}, fill));
}
