// expect: a ParameterServer needs gradients in memory: use nn::StoredGradients
#include <dist/nn.hpp>
#include <dist/parameter_server.hpp>

namespace nn = dist::nn;
using Net = nn::Sequential<nn::Input<8>, nn::Dense<8>>;

#ifndef CONTROL
using Storage = nn::OwnerComputedGradients<1>;
#else
using Storage = nn::StoredGradients;
#endif

void make(dist::ParameterServer<dist::Local>& strategy) {
  const nn::Network<Net, nn::Reference, float, Storage> net{strategy};
}

int main() {}
