// expect: this optimizer, like nn::Lamb, takes norms of gradients
#include <dist/nn/layers/dense.hpp>
#include <dist/nn/network.hpp>
#include <dist/nn/optimizer.hpp>
#include <dist/nn/optimizers/lamb.hpp>
#include <dist/strategy/mirrored.hpp>

namespace nn = dist::nn;

#ifdef CONTROL
using Storage = nn::StoredGradients;
#else
using Storage = nn::OwnerComputedGradients<1>;
#endif

int main() {
  dist::Mirrored<dist::ThreadAllReduce> strategy{2};
  nn::Network<nn::Sequential<nn::Input<4>, nn::Dense<4>>, nn::Reference, float, Storage> net{strategy};
  nn::Optimizer optimizer{strategy, net, nn::Lamb{}};
  return optimizer.learning_rate() > 0 ? 0 : 1;
}
