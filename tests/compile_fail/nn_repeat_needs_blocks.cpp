// expect: nn::Repeat needs at least one block
#include <dist/nn/layers/dense.hpp>
#include <dist/nn/layers/repeat.hpp>
#include <dist/nn/sequential.hpp>

namespace nn = dist::nn;

#ifdef CONTROL
constexpr int blocks = 1;
#else
constexpr int blocks = 0;
#endif

using Net = nn::Sequential<nn::Input<4>, nn::Repeat<blocks, nn::Dense<4>>>;

int main() { return Net::parameter_count > 0 ? 0 : 1; }
