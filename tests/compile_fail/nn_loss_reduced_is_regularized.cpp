// expect: nn::Reduced goes inside nn::Regularized
#include <dist/nn/losses/reduced.hpp>
#include <dist/nn/losses/regression.hpp>
#include <dist/nn/regularizer.hpp>

namespace nn = dist::nn;

int main() {
#ifdef CONTROL
  const nn::Regularized loss{nn::Reduced{nn::MeanSquaredError{}, nn::Reduction::Sum{}}, nn::L2{}};
#else
  const nn::Reduced loss{nn::Regularized{nn::MeanSquaredError{}, nn::L2{}}, nn::Reduction::Sum{}};
#endif
  return loss.name.empty() ? 1 : 0;
}
