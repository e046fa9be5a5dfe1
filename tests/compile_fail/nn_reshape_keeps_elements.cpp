// expect: nn::Reshape must keep the number of elements
#include <dist/nn/layers/views.hpp>
#include <dist/nn/sequential.hpp>

namespace nn = dist::nn;

#ifdef CONTROL
using Net = nn::Sequential<nn::Input<784>, nn::Reshape<28, 28, 1>>;
#else
using Net = nn::Sequential<nn::Input<784>, nn::Reshape<28, 27, 1>>;
#endif

int main() { return Net::layer_count == 1 ? 0 : 1; }
