// expect: a variable is written with one number, a Tensor or a TensorView
#include <vector>

#include <dist/strategy/default.hpp>

int main() {
  dist::Default strategy;
  auto variable = strategy.variable<float>({2});
  const std::vector<float> values{1, 2};
#ifdef CONTROL
  variable.assign(strategy.scope(), dist::TensorView<const float>{values, {2}});
#else
  variable.assign(strategy.scope(), values);
#endif
}
