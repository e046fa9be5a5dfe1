// expect: nn::SlicesOptimizer updates some rows of a parameter, but this optimizer, like nn::Lamb, needs norms
#include <dist/nn/optimizers/adam.hpp>
#include <dist/nn/optimizers/lamb.hpp>
#include <dist/nn/slices_optimizer.hpp>
#include <dist/strategy/default.hpp>

namespace nn = dist::nn;

#ifdef CONTROL
const nn::Adam function{};
#else
const nn::Lamb function{};
#endif

int main() {
  dist::Default strategy;
  auto table = strategy.variable<float>(dist::Shape{4, 2});
  nn::SlicesOptimizer optimizer{strategy, table, function};
  return optimizer.function().learning_rate > 0 ? 0 : 1;
}
