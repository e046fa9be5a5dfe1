// expect: nn::With takes only one nn::LearningRateSchedule
#include <dist/nn/optimizers/sgd.hpp>
#include <dist/nn/optimizers/with.hpp>
#include <dist/nn/schedules/decays.hpp>

namespace nn = dist::nn;

#ifdef CONTROL
using Option = nn::AverageWeights;
#else
using Option = nn::CosineDecay;
#endif

int main() {
  const nn::With optimizer{nn::SGD{}, nn::ExponentialDecay{0.1F, 10, 0.5F}, Option{}};
  return optimizer.name.empty() ? 1 : 0;
}
