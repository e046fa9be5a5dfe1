// expect: nn::MaxPool2D and nn::AveragePool2D take rows [height, width, channels], but their input has a different
#include <dist/nn/layers/dense.hpp>
#include <dist/nn/layers/pool2d.hpp>
#include <dist/nn/layers/views.hpp>
#include <dist/nn/sequential.hpp>

namespace nn = dist::nn;

#ifdef CONTROL
using In = nn::Input<4, 4, 1>;
#else
using In = nn::Input<16, 1>;
#endif

using Net = nn::Sequential<In, nn::AveragePool2D<2>, nn::Flatten, nn::Dense<2>>;

int main() { return Net::parameter_count > 0 ? 0 : 1; }
