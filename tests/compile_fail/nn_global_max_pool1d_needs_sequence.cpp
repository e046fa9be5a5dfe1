// expect: nn::GlobalMaxPool1D and nn::GlobalAveragePool1D take rows [length, channels], but their input has a different
#include <dist/nn/layers/dense.hpp>
#include <dist/nn/layers/pool1d.hpp>
#include <dist/nn/sequential.hpp>

namespace nn = dist::nn;

#ifdef CONTROL
using Net = nn::Sequential<nn::Input<4, 2>, nn::Dense<2>, nn::GlobalMaxPool1D>;
#else
using Net = nn::Sequential<nn::Input<4, 4, 2>, nn::Dense<2>, nn::GlobalMaxPool1D>;
#endif

int main() { return Net::parameter_count > 0 ? 0 : 1; }
