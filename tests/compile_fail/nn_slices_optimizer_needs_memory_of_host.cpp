// expect: nn::SlicesOptimizer updates rows in host memory, but this strategy's variables are in the memory of another device
#include <dist/nn/optimizers/sgd.hpp>
#include <dist/nn/slices_optimizer.hpp>
#include <dist/strategy/default.hpp>

namespace nn = dist::nn;

struct FarMemory {
  static constexpr bool host_accessible = false;
};
struct FarDevice : dist::Cpu {
  using Space = FarMemory;
};
struct Far : dist::Default {
#ifndef CONTROL
  using Device = FarDevice;
#endif
};

int main() {
  Far strategy;
  auto table = strategy.variable<float>(dist::Shape{4, 2});
  nn::SlicesOptimizer optimizer{strategy, table, nn::SGD{}};
  const dist::IndexedSlices<float> slices{0, dist::Shape{4, 2}};
  strategy.run([&](auto& replica) { optimizer.apply_slices(replica, slices); });
}
