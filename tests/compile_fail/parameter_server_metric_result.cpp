// expect: a step on a worker cannot access the sums of the other workers: read the result on the coordinator
#include <dist/nn.hpp>
#include <dist/parameter_server.hpp>

namespace nn = dist::nn;

#ifndef CONTROL
using Strategy = dist::ParameterServer<dist::Local>;
#else
using Strategy = dist::Default;
#endif

double mean(Strategy& strategy) {
  const nn::Metric metric{strategy, nn::MeanValue{}};
  return strategy.run([&](auto& replica) { return metric.result(replica); });
}

int main() {}
