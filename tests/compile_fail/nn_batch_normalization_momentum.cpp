// expect: nn::BatchNormalization needs a momentum from 0 to 1
#include <dist/nn/layers/batch_normalization.hpp>
#include <dist/nn/sequential.hpp>

namespace nn = dist::nn;

struct Options : nn::BatchNormalizationOptions {
#ifdef CONTROL
  static constexpr double momentum = 0.9;
#else
  static constexpr double momentum = 90;
#endif
};
using Net = nn::Sequential<nn::Input<2>, nn::BatchNormalization<nn::PerReplicaStatistics, Options>>;

int main() { return Net::layer_count == 1 ? 0 : 1; }
