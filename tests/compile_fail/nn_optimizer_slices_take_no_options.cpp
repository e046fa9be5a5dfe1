// expect: nn::SlicesOptimizer takes an optimizer without options
#include <dist/nn/optimizers/sgd.hpp>
#include <dist/nn/optimizers/with.hpp>
#include <dist/nn/slices_optimizer.hpp>
#include <dist/strategy/default.hpp>

namespace nn = dist::nn;

#ifdef CONTROL
const nn::SGD function{};
#else
const nn::With function{nn::SGD{}, nn::ClipNorm{1.0f}};
#endif

int main() {
  dist::Default strategy;
  auto table = strategy.variable<float>(dist::Shape{4, 2});
  nn::SlicesOptimizer optimizer{strategy, table, function};
  return optimizer.function().learning_rate > 0 ? 0 : 1;
}
