// expect: nn::Bias adds a vector along the last axis, but its input has no axis
#include <dist/nn/layers/bias.hpp>
#include <dist/nn/sequential.hpp>

namespace nn = dist::nn;

#ifdef CONTROL
using In = nn::Input<1>;
#else
using In = nn::Input<>;
#endif

using Net = nn::Sequential<In, nn::Bias<>>;

int main() { return Net::parameter_count > 0 ? 0 : 1; }
