// expect: nn::Repeat needs a block whose output has the shape of its input
#include <dist/nn/layers/dense.hpp>
#include <dist/nn/layers/repeat.hpp>
#include <dist/nn/sequential.hpp>

namespace nn = dist::nn;

#ifdef CONTROL
using Last = nn::Dense<4>;
#else
using Last = nn::Dense<5>;
#endif

using Net = nn::Sequential<nn::Input<4>, nn::Repeat<3, nn::Sequential<nn::Dense<8>, Last>>>;

int main() { return Net::parameter_count > 0 ? 0 : 1; }
