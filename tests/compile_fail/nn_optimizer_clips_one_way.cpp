// expect: nn::With takes only one of nn::ClipValue, nn::ClipNorm and nn::GlobalClipNorm
#include <dist/nn/optimizers/sgd.hpp>
#include <dist/nn/optimizers/with.hpp>

namespace nn = dist::nn;

#ifdef CONTROL
using Other = nn::WeightDecay;
#else
using Other = nn::GlobalClipNorm;
#endif

int main() {
  const nn::With optimizer{nn::SGD{}, nn::ClipNorm{1.0f}, Other{1.0f}};
  optimizer.check();
}
