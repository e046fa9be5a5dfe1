// expect: a metric's result needs a context: result(strategy.scope()) outside replica functions
#include <dist/nn/metrics/mean_of.hpp>
#include <dist/strategy/default.hpp>

int main() {
  dist::Default strategy;
  dist::nn::Metric metric{strategy, dist::nn::MeanValue{}};
#ifdef CONTROL
  return metric.result(strategy.scope()) == 0 ? 0 : 1;
#else
  return metric.result() == 0 ? 0 : 1;
#endif
}
