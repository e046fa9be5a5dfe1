// expect: an update is called as update(i, weight, gradient), with an index and two values of the elements' type, and returns the new weight
#include <cstddef>
#include <span>

#include <dist/dist.hpp>
#include <dist/nn.hpp>

namespace nn = dist::nn;

int main() {
  dist::Mirrored<dist::ThreadAllReduce> strategy{2};
  nn::Network<nn::Sequential<nn::Input<4>, nn::Dense<2>>> net{strategy};
  strategy.run([&](auto& replica) {
#ifdef CONTROL
    net.reduce_and_apply(replica, [](std::size_t, float weight, float gradient) { return weight - gradient; });
#else
    net.reduce_and_apply(replica, [](std::size_t, std::span<float>, std::span<const float>) {});
#endif
  });
}
