// expect: nn::OwnerComputedGradients needs replicas in one address space
#include <dist/nn/layers/dense.hpp>
#include <dist/nn/network.hpp>
#include <dist/strategy/mirrored.hpp>
#include "../support/unshared.hpp"

namespace nn = dist::nn;

#ifdef CONTROL
using Storage = nn::StoredGradients;
#else
using Storage = nn::OwnerComputedGradients<1>;
#endif

int main() {
  dist::Mirrored<testing::Unshared> strategy{2};
  nn::Network<nn::Sequential<nn::Input<4>, nn::Dense<4>>, nn::Reference, float, Storage> net{strategy};
}
