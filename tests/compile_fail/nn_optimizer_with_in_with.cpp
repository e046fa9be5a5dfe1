// expect: give all options to one nn::With
#include <dist/nn/optimizers/sgd.hpp>
#include <dist/nn/optimizers/with.hpp>

namespace nn = dist::nn;

int main() {
#ifdef CONTROL
  const nn::With optimizer{nn::SGD{}, nn::GlobalClipNorm{1.0f}, nn::AverageWeights{}};
#else
  const nn::With optimizer{nn::With{nn::SGD{}, nn::GlobalClipNorm{1.0f}}, nn::AverageWeights{}};
#endif
  optimizer.check();
}
