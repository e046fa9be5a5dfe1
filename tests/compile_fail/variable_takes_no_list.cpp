// expect: a variable is written with one number, a tensor, or a contiguous range of numbers
#include <list>
#include <vector>

#include <dist/strategy/default.hpp>

int main() {
  dist::Default strategy;
  auto variable = strategy.variable<float>({2});
#ifdef CONTROL
  variable.assign(strategy.scope(), std::vector<float>{1, 2});
#else
  variable.assign(strategy.scope(), std::list<float>{1, 2});
#endif
}
