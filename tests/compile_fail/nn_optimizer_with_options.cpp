// expect: nn::With takes the options nn::ClipValue
#include <dist/nn/optimizers/sgd.hpp>
#include <dist/nn/optimizers/with.hpp>

namespace nn = dist::nn;

struct Other {
  void check() const {}
};
#ifdef CONTROL
using Option = nn::AverageWeights;
#else
using Option = Other;
#endif

int main() {
  const nn::With optimizer{nn::SGD{}, Option{}};
  optimizer.check();
}
