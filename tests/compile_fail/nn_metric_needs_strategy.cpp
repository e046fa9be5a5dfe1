// expect: a metric needs a strategy as its first argument
#include <dist/nn/metric.hpp>
#include <dist/nn/metrics/mean_of.hpp>
#include <dist/strategy/default.hpp>

namespace nn = dist::nn;

int main() {
  dist::Default strategy;
#ifdef CONTROL
  nn::Metric mean{strategy, nn::MeanValue{}};
#else
  auto scope = strategy.scope();
  nn::Metric mean{scope, nn::MeanValue{}};
#endif
  strategy.run([&](auto& replica) { mean.update(replica, 2.0, 1.0); });
}
