// expect: nn::BatchNormalization normalises channels (the last axis), but its input has no axis
#include <dist/nn/layers/batch_normalization.hpp>
#include <dist/nn/sequential.hpp>

namespace nn = dist::nn;

#ifdef CONTROL
using Net = nn::Sequential<nn::Input<1>, nn::BatchNormalization<>>;
#else
using Net = nn::Sequential<nn::Input<>, nn::BatchNormalization<>>;
#endif

int main() { return Net::layer_count == 1 ? 0 : 1; }
