// expect: nn::BatchNormalization needs an epsilon above 0
#include <dist/nn/layers/batch_normalization.hpp>
#include <dist/nn/sequential.hpp>

namespace nn = dist::nn;

struct Options : nn::BatchNormalizationOptions {
#ifdef CONTROL
  static constexpr double epsilon = 1e-5;
#else
  static constexpr double epsilon = 0;
#endif
};
using Net = nn::Sequential<nn::Input<2>, nn::BatchNormalization<nn::PerReplicaStatistics, Options>>;

int main() { return Net::layer_count == 1 ? 0 : 1; }
