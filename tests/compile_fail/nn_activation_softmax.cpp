// expect: nn::Softmax and nn::ReLU are layers
#include <dist/nn/layers/dense.hpp>
#include <dist/nn/layers/softmax.hpp>
#include <dist/nn/sequential.hpp>

namespace nn = dist::nn;

#ifdef CONTROL
using Net = nn::Sequential<nn::Input<4>, nn::Dense<2>, nn::Softmax>;
#else
using Net = nn::Sequential<nn::Input<4>, nn::Dense<2, nn::Softmax>>;
#endif

int main() { return Net::parameter_count > 0 ? 0 : 1; }
