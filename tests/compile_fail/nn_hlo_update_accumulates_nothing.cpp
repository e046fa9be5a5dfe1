// expect: nn::AccumulateGradients keeps gradients from one call to the next, which a step that is traced does not: give it larger batches, or run the step instead of compiling it
#include <span>

#include <dist/nn/hlo/traced_update.hpp>
#include <dist/nn/optimizers/sgd.hpp>

#ifdef CONTROL
using Option = dist::nn::ClipValue;
#else
using Option = dist::nn::AccumulateGradients;
#endif

void update(dist::nn::StepNumbers numbers, std::span<dist::nn::TracedParameter> parameters) {
  dist::nn::traced_update(dist::nn::With{dist::nn::SGD{}, Option{4}}, numbers, parameters);
}
