// expect: an nn::SlicesOptimizer needs a strategy as its first argument
#include <dist/nn/optimizers/sgd.hpp>
#include <dist/nn/slices_optimizer.hpp>
#include <dist/strategy/default.hpp>

namespace nn = dist::nn;

int main() {
  dist::Default strategy;
  auto table = strategy.variable<float>(dist::Shape{4, 2});
#ifdef CONTROL
  nn::SlicesOptimizer optimizer{strategy, table, nn::SGD{}};
#else
  nn::SlicesOptimizer optimizer{table, strategy, nn::SGD{}};
#endif
}
