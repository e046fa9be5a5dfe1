// expect: in a step that is traced, the targets of a loss or a metric are a part of its batch, or a traced array: a tensor of the host would be a constant of the program
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
