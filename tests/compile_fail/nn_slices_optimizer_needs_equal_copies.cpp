// expect: nn::SlicesOptimizer makes the same change to every copy
#include <dist/nn/optimizers/sgd.hpp>
#include <dist/nn/slices_optimizer.hpp>
#include <dist/strategy/default.hpp>

namespace nn = dist::nn;

#ifdef CONTROL
using Synchronization = dist::OnWrite;
#else
using Synchronization = dist::OnRead;
#endif

int main() {
  dist::Default strategy;
  auto table = strategy.variable<float, Synchronization, dist::Sum>({4, 2}, 0.0f, "table", dist::Trainable::yes);
  nn::SlicesOptimizer optimizer{strategy, table, nn::SGD{}};
  return optimizer.function().learning_rate > 0 ? 0 : 1;
}
