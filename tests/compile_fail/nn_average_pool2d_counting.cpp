// expect: the last argument of nn::AveragePool2D is nn::ExcludePadding or nn::CountPadding
#include <dist/nn/layers/pool2d.hpp>
#include <dist/nn/sequential.hpp>

namespace nn = dist::nn;

#ifdef CONTROL
using Pool = nn::AveragePool2D<2, 2, nn::Same, nn::CountPadding>;
#else
using Pool = nn::AveragePool2D<2, 2, nn::Same, nn::Same>;
#endif

int main() { return nn::Sequential<nn::Input<4, 4, 1>, Pool>::parameter_count == 0 ? 0 : 1; }
