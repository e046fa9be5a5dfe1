// expect: nn::Conv1D takes rows [length, channels], but its input has a different number of axes
#include <dist/nn/layers/conv1d.hpp>
#include <dist/nn/sequential.hpp>

namespace nn = dist::nn;

#ifdef CONTROL
using Net = nn::Sequential<nn::Input<28, 3>, nn::Conv1D<8, 3>>;
#else
using Net = nn::Sequential<nn::Input<28, 28, 3>, nn::Conv1D<8, 3>>;
#endif

int main() { return Net::parameter_count > 0 ? 0 : 1; }
