// expect: an nn::Regularized inside another would lose its regularizer
#include <dist/nn/losses/regression.hpp>
#include <dist/nn/regularizer.hpp>

namespace nn = dist::nn;

int main() {
#ifdef CONTROL
  const nn::Regularized loss{nn::MeanSquaredError{}, nn::L1L2{.l1 = 0.5f, .l2 = 0.25f}};
#else
  const nn::Regularized loss{nn::Regularized{nn::MeanSquaredError{}, nn::L1{0.5f}}, nn::L2{0.25f}};
#endif
  return loss.name.empty() ? 1 : 0;
}
