// expect: nn::MultiHeadAttention takes rows [length, channels], but its input has a different number of axes
#include <dist/nn/layers/multi_head_attention.hpp>
#include <dist/nn/sequential.hpp>

namespace nn = dist::nn;

#ifdef CONTROL
using In = nn::Input<4, 6>;
#else
using In = nn::Input<24>;
#endif

using Net = nn::Sequential<In, nn::MultiHeadAttention<2, 3>>;

int main() { return Net::parameter_count > 0 ? 0 : 1; }
