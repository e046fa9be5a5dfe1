// expect: a metric needs an nn::MetricFunction, which has a type Tally and a name
#include <dist/nn/metric.hpp>
#include <dist/nn/metrics/mean_of.hpp>
#include <dist/strategy/default.hpp>

namespace nn = dist::nn;

struct Largest {
#ifdef CONTROL
  using Tally = nn::Tally<double, double>;
#endif
  std::string_view name = "largest";
};

int main() {
  dist::Default strategy;
  nn::Metric largest{strategy, Largest{}};
}
