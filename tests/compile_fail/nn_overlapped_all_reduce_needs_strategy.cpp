// expect: an nn::OverlappedAllReduce needs a strategy as its first argument
#include <dist/nn/layers/dense.hpp>
#include <dist/nn/network.hpp>
#include <dist/nn/overlapped_all_reduce.hpp>
#include <dist/nn/sequential.hpp>
#include <dist/strategy/default.hpp>

namespace nn = dist::nn;

using Net = nn::Network<nn::Sequential<nn::Input<4>, nn::Dense<2>>>;

int main() {
  dist::Default strategy;
  Net net{strategy};
#ifdef CONTROL
  nn::OverlappedAllReduce overlap{strategy, net};
#else
  nn::OverlappedAllReduce overlap{net, strategy};
#endif
  strategy.run([&](auto& replica) { overlap.wait(replica); });
}
