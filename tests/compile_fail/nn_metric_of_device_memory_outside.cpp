// expect: outputs, targets and weights must be in the memory that this call reads
// only error
#include <dist/nn/metrics/accuracy.hpp>
#include <dist/strategy/default.hpp>

#ifdef CONTROL
using Elsewhere = dist::HostMemory;
#else
struct Elsewhere {
  static constexpr bool host_accessible = false;
};
#endif

int main() {
  dist::Default strategy;
  dist::nn::Metric accuracy{strategy, dist::nn::SparseCategoricalAccuracy{}};
  const dist::TensorView<float, Elsewhere> outputs;
  const dist::TensorView<int, Elsewhere> labels;
  accuracy.update(strategy.scope(), outputs, labels);
}
