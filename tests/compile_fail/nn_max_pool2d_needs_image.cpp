// expect: nn::MaxPool2D and nn::AveragePool2D take rows [height, width, channels], but their input has a different
#include <dist/nn/layers/pool2d.hpp>
#include <dist/nn/sequential.hpp>

namespace nn = dist::nn;

#ifdef CONTROL
using Net = nn::Sequential<nn::Input<4, 5, 1>, nn::MaxPool2D<2>>;
#else
using Net = nn::Sequential<nn::Input<4, 5>, nn::MaxPool2D<2>>;
#endif

int main() { return Net::layer_count == 1 ? 0 : 1; }
