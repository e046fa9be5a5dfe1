// expect: nn::LearnedPositions takes rows [length, width], but its input has a different number of axes
#include <dist/nn/layers/learned_positions.hpp>
#include <dist/nn/sequential.hpp>

namespace nn = dist::nn;

#ifdef CONTROL
using In = nn::Input<4, 6>;
#else
using In = nn::Input<24>;
#endif

using Net = nn::Sequential<In, nn::LearnedPositions<>>;

int main() { return Net::parameter_count > 0 ? 0 : 1; }
