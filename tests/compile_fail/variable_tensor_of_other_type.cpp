// expect: a variable is written with one number, or with numbers of the variable's own element type
#include <dist/strategy/default.hpp>

int main() {
  dist::Default strategy;
  auto variable = strategy.variable<float>({2});
#ifdef CONTROL
  const dist::Tensor<float> values{{2}};
#else
  const dist::Tensor<double> values{{2}};
#endif
  variable.assign(strategy.scope(), values);
}
