// expect: nn::Recomputed computes its layers twice in a step, so it takes no layers with random numbers or statistics
#include <dist/nn/layers/dense.hpp>
#include <dist/nn/layers/dropout.hpp>
#include <dist/nn/layers/recomputed.hpp>
#include <dist/nn/sequential.hpp>

namespace nn = dist::nn;

#ifdef CONTROL
using Part = nn::Dense<4>;
#else
using Part = nn::Sequential<nn::Dense<4>, nn::Dropout<10>>;
#endif

using Net = nn::Sequential<nn::Input<4>, nn::Recomputed<Part>>;

int main() { return Net::parameter_count > 0 ? 0 : 1; }
