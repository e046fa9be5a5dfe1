// expect: this optimizer already decays weights
#include <dist/nn/optimizers/adam.hpp>
#include <dist/nn/optimizers/with.hpp>

namespace nn = dist::nn;

#ifdef CONTROL
using Function = nn::Adam;
#else
using Function = nn::AdamW;
#endif

int main() {
  const nn::With optimizer{Function{}, nn::WeightDecay{}};
  optimizer.check();
}
