// expect: nn::OverlappedAllReduce sums gradients in the host's memory, and this strategy's gradients lie in that of another
#include <dist/comm/memory/shared_memory_all_reduce.hpp>
#include <dist/nn/layers/dense.hpp>
#include <dist/nn/network.hpp>
#include <dist/nn/overlapped_all_reduce.hpp>
#include <dist/nn/sequential.hpp>
#include <dist/strategy/mirrored.hpp>
#include <support/guarded_all_reduce.hpp>

namespace nn = dist::nn;

#ifdef CONTROL
using Backend = nn::Reference;
using Replicas = dist::Mirrored<dist::SharedMemoryAllReduce>;
#else
struct Backend : nn::Reference {
  using Device = testing::GuardedDevice;
};
using Replicas = dist::Mirrored<testing::GuardedAllReduce, testing::GuardedDevice>;
#endif
using Net = nn::Network<nn::Sequential<nn::Input<4>, nn::Dense<2>>, Backend>;

void train(Replicas& strategy, Net& net) {
  nn::OverlappedAllReduce overlap{strategy, net};
  strategy.run([&](auto& replica) { overlap.wait(replica); });
}

int main() {}
