// expect: nn::OwnerComputedGradients multiplies numbers without rounding them: use nn::StoredGradients with nn::MixedPrecision
#include <dist/core/float16.hpp>
#include <dist/nn/layers/dense.hpp>
#include <dist/nn/mixed_precision.hpp>
#include <dist/nn/network.hpp>
#include <dist/nn/reference/backend.hpp>
#include <dist/strategy/mirrored.hpp>

namespace nn = dist::nn;

#ifdef CONTROL
using Storage = nn::StoredGradients;
#else
using Storage = nn::OwnerComputedGradients<1>;
#endif
using Backend = nn::MixedPrecision<nn::Reference, dist::BFloat16>;

int main() {
  dist::Mirrored<dist::ThreadAllReduce> strategy{2};
  const nn::Network<nn::Sequential<nn::Input<4>, nn::Dense<4>>, Backend, float, Storage> net{strategy};
}
