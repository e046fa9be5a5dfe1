// expect: a loss is reduced by nn::Reduction::None
#include <dist/nn/losses/reduced.hpp>
#include <dist/nn/losses/regression.hpp>

namespace nn = dist::nn;

#ifdef CONTROL
using Reduction = nn::Reduction::Sum;
#else
using Reduction = int;
#endif

int main() {
  const nn::Reduced loss{nn::MeanSquaredError{}, Reduction{}};
  return loss.name.empty() ? 1 : 0;
}
