// expect: nn::SlicesOptimizer updates rows in the host's memory, and this strategy's variables lie in that of another device
#include <dist/nn/optimizers/sgd.hpp>
#include <dist/nn/slices_optimizer.hpp>
#include <dist/strategy/one_device.hpp>
#include <support/guarded_device.hpp>

namespace nn = dist::nn;

#ifdef CONTROL
using Device = dist::Cpu;
#else
using Device = testing::GuardedDevice;
#endif

int main() {
  dist::OneDevice<Device> strategy;
  auto table = strategy.variable<float>(dist::Shape{4, 2});
  nn::SlicesOptimizer optimizer{strategy, table, nn::SGD{}};
  const dist::IndexedSlices<float> slices{0, dist::Shape{4, 2}};
  strategy.run([&](auto& replica) { optimizer.apply_slices(replica, slices); });
}
