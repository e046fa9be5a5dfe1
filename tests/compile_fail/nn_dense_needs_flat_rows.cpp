// expect: nn::Dense takes rows with one axis, but its input has a different number of axes
#include <dist/nn/layers/dense.hpp>
#include <dist/nn/layers/views.hpp>
#include <dist/nn/sequential.hpp>

namespace nn = dist::nn;

#ifdef CONTROL
using Net = nn::Sequential<nn::Input<4, 5>, nn::Flatten, nn::Dense<3>>;
#else
using Net = nn::Sequential<nn::Input<4, 5>, nn::Dense<3>>;
#endif

int main() { return Net::parameter_count > 0 ? 0 : 1; }
