// expect: nn::With takes each option once
#include <dist/nn/optimizers/sgd.hpp>
#include <dist/nn/optimizers/with.hpp>

namespace nn = dist::nn;

#ifdef CONTROL
using Option = nn::WeightDecay;
#else
using Option = nn::AverageWeights;
#endif

int main() {
  const nn::With optimizer{nn::SGD{}, nn::AverageWeights{}, Option{}};
  return optimizer.name.empty() ? 1 : 0;
}
