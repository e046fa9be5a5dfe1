// expect: a variable's initial value must be a number, a TensorView of its element type, a contiguous range of numbers
#include <dist/strategy/default.hpp>

int main() {
  dist::Default strategy;
#ifdef CONTROL
  const dist::Tensor<float> values{dist::Shape{3}};
#else
  const dist::Tensor<double> values{dist::Shape{3}};
#endif
  const auto variable = strategy.variable<float>({3}, values.view());
  return variable.size() == 3 ? 0 : 1;
}
