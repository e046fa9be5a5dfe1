// expect: nn::GlobalMaxPool2D and nn::GlobalAveragePool2D take rows [height, width, channels], but their input has
#include <dist/nn/layers/dense.hpp>
#include <dist/nn/layers/pool2d.hpp>
#include <dist/nn/sequential.hpp>

namespace nn = dist::nn;

#ifdef CONTROL
using In = nn::Input<4, 4, 1>;
#else
using In = nn::Input<16>;
#endif

using Net = nn::Sequential<In, nn::GlobalAveragePool2D, nn::Dense<2>>;

int main() { return Net::parameter_count > 0 ? 0 : 1; }
