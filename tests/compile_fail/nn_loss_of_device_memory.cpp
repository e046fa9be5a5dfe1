// expect: outputs, targets and weights must be in the memory that this call reads
// only error
#include <dist/nn/loss.hpp>
#include <dist/nn/losses/regression.hpp>
#include <dist/strategy/default.hpp>

#ifdef CONTROL
using Elsewhere = dist::HostMemory;
#else
struct Elsewhere {
  static constexpr bool host_accessible = false;
};
#endif

struct Outputs {
  dist::TensorView<float, Elsewhere> values;
  dist::TensorView<float, Elsewhere> gradient;
};

int main() {
  dist::Default strategy;
  const Outputs outputs;
  strategy.run([&](auto& replica) {
    static_cast<void>(dist::nn::compute_loss(dist::nn::MeanSquaredError{}, replica, outputs, outputs.values, 1));
  });
}
