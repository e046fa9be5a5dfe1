// expect: save, load, save_weights and load_weights of a model are defined in dist/train/model_files.hpp
#include <dist/nn.hpp>
#include <dist/nn/layers/dense.hpp>
#include <dist/strategy/default.hpp>
#include <dist/train/model.hpp>
#ifdef CONTROL
#include <dist/train/model_files.hpp>
#endif

namespace nn = dist::nn;
using Net = nn::Network<nn::Sequential<nn::Input<4>, nn::Dense<2>>>;

int main() {
  dist::Default strategy;
  Net net{strategy};
  nn::Model model{strategy, net, nn::SGD{}, nn::SparseCategoricalCrossentropy{}};
  model.save("model");
}
