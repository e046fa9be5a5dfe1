// expect: nn::skip_aggregation needs a copy of the parameters on every replica
#include <dist/nn/layers/dense.hpp>
#include <dist/nn/network.hpp>
#include <dist/nn/optimizer.hpp>
#include <dist/nn/optimizers/sgd.hpp>
#include <dist/strategy/central_storage.hpp>
#include <dist/strategy/mirrored.hpp>

namespace nn = dist::nn;

#ifdef CONTROL
using Strategy = dist::Mirrored<dist::ThreadAllReduce>;
#else
using Strategy = dist::CentralStorage<dist::Cpu>;
#endif

int main() {
  Strategy strategy{2};
  nn::Network<nn::Sequential<nn::Input<4>, nn::Dense<2>>> net{strategy};
  nn::Optimizer optimizer{strategy, net, nn::SGD{}};
  strategy.run([&](auto& replica) { optimizer.apply_gradients(replica, nn::skip_aggregation); });
}
