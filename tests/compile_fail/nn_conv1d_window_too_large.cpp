// expect: nn::Conv1D's window is larger than its input
#include <dist/nn/layers/conv1d.hpp>
#include <dist/nn/sequential.hpp>

namespace nn = dist::nn;

#ifdef CONTROL
using Net = nn::Sequential<nn::Input<4, 1>, nn::Conv1D<8, 4>>;
#else
using Net = nn::Sequential<nn::Input<4, 1>, nn::Conv1D<8, 5>>;
#endif

int main() { return Net::parameter_count > 0 ? 0 : 1; }
