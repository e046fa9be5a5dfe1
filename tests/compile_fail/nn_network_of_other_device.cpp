// expect: the back end of this network computes on a different device than the strategy's replicas
#include <dist/nn/layers/dense.hpp>
#include <dist/nn/network.hpp>
#include <dist/strategy/one_device.hpp>

namespace nn = dist::nn;

struct Other : dist::Cpu {};

#ifdef CONTROL
using Device = dist::Cpu;
#else
using Device = Other;
#endif

int main() {
  dist::OneDevice<Device> strategy;
  nn::Network<nn::Sequential<nn::Input<4>, nn::Dense<4>>, nn::Reference> net{strategy};
}
