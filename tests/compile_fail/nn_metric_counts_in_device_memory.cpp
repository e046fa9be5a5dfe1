// expect: outputs, targets and weights must be in the memory that this call reads
// only error
#include <dist/nn/metrics/confusion_matrix.hpp>
#include <dist/strategy/default.hpp>

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

void count(Far& strategy, dist::nn::Metric<Far, dist::nn::ConfusionMatrix>& matrix, const dist::Tensor<float>& outputs,
           const dist::Tensor<int>& labels) {
  strategy.run([&](auto& replica) { matrix.update(replica, outputs, labels); });
}

int main() {}
