// expect: an nn::LossScale is updated on the host after each step, but a compiled step runs entirely on devices: compute with dist::BFloat16, which needs no scale, or call strategy.run
#include <dist/nn.hpp>
#include <dist/nn/xla.hpp>
#include <dist/tpu.hpp>
#include <dist/train.hpp>

namespace nn = dist::nn;

#ifdef CONTROL
using Half = dist::BFloat16;
#else
using Half = dist::Float16;
#endif

int main() {
  dist::Tpu<> strategy;
  nn::Network<nn::Sequential<nn::Input<1>, nn::Dense<1>>, nn::MixedPrecision<nn::Xla, Half>> net{strategy};
  nn::Model model{strategy, net, nn::SGD{}, nn::MeanSquaredError{}};
  const dist::Tensor<float> x{{2, 1}, {1, 2}};
  model.fit(x, x);
}
