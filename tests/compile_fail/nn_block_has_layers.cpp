// expect: Layers<In> of a block must be a layer or an nn::Sequential of layers
#include <dist/nn/layers/dense.hpp>
#include <dist/nn/sequential.hpp>

namespace nn = dist::nn;

struct Block {
  template <class In>
#ifdef CONTROL
  using Layers = nn::Dense<In::last_extent>;
#else
  using Layers = In;
#endif
};

using Net = nn::Sequential<nn::Input<4>, Block>;

int main() { return Net::parameter_count > 0 ? 0 : 1; }
