// expect: nn::OverlappedAllReduce sums gradients in host memory, but this strategy's gradients are in the memory of another
#include <dist/nn/layers/dense.hpp>
#include <dist/nn/network.hpp>
#include <dist/nn/overlapped_all_reduce.hpp>
#include <dist/nn/sequential.hpp>
#include <dist/strategy/default.hpp>

namespace nn = dist::nn;
using Net = nn::Network<nn::Sequential<nn::Input<4>, nn::Dense<2>>>;

struct FarMemory {
  static constexpr bool host_accessible = false;
};
struct FarDevice : dist::Cpu {
  using Space = FarMemory;
};
struct Far : dist::Default {
#ifndef CONTROL
  using Device = FarDevice;
#endif
};

void train(Far& strategy, Net& net) {
  nn::OverlappedAllReduce overlap{strategy, net};
  strategy.run([&](auto& replica) { overlap.wait(replica); });
}

int main() {}
