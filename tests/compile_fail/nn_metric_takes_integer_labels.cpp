// expect: a sparse accuracy takes integer labels
#include <dist/nn/metrics/accuracy.hpp>
#include <dist/strategy/default.hpp>

namespace nn = dist::nn;

int main() {
  dist::Default strategy;
  nn::Metric accuracy{strategy, nn::SparseCategoricalAccuracy{}};
  const dist::Tensor<float> outputs{dist::Shape{2, 3}};
#ifdef CONTROL
  const dist::Tensor<int> labels{dist::Shape{2}};
#else
  const dist::Tensor<float> labels{dist::Shape{2}};
#endif
  strategy.run([&](auto& replica) { accuracy.update(replica, outputs, labels); });
}
