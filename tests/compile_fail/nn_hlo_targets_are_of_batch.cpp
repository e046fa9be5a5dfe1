// expect: in a traced step, the targets given to a loss or a metric are part of the batch, or a traced array: a host tensor would become a constant of the program
#include <dist/core/tensor.hpp>
#include <dist/nn/hlo/traced_loss.hpp>
#include <dist/nn/losses/regression.hpp>

using X = dist::hlo::Traced<float, 2, 4>;
#ifdef CONTROL
using Targets = X;
#else
using Targets = dist::Tensor<float>;
#endif

auto losses(X outputs, const Targets& targets) {
  return dist::nn::traced_losses(dist::nn::MeanSquaredError{}, 2, outputs, targets);
}
