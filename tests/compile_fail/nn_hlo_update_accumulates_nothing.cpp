// expect: nn::AccumulateGradients keeps gradients from one call to the next, which a step that is traced does not: give it larger batches, or run the step instead of compiling it
#include <array>

#include <dist/nn/hlo/traced_update.hpp>
#include <dist/nn/optimizers/sgd.hpp>

using X = dist::hlo::Traced<float, 4>;
#ifdef CONTROL
using Option = dist::nn::ClipValue;
#else
using Option = dist::nn::AccumulateGradients;
#endif

X updated(dist::nn::StepNumbers numbers, X weights, X gradient) {
  std::array<X, 0> none;
  return dist::nn::traced_update(dist::nn::With{dist::nn::SGD{}, Option{4}}, numbers, weights, gradient, none);
}
