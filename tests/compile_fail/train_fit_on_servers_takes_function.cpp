// expect: the workers of a ParameterServer make their own datasets: give fit a function
#include <dist/data.hpp>
#include <dist/nn.hpp>
#include <dist/parameter_server.hpp>
#include <dist/train.hpp>

namespace nn = dist::nn;

void train(dist::ParameterServer<dist::Local>& strategy, const dist::Tensor<float>& x, const dist::Tensor<float>& y) {
  nn::Network<nn::Sequential<nn::Input<2>, nn::Dense<1>>> net{strategy};
  nn::Model model{strategy, net, nn::SGD{}, nn::MeanSquaredError{}};
#ifndef CONTROL
  model.fit(dist::data::tensor_slices(x, y) | dist::data::batch(2), {.steps_per_epoch = 1});
#else
  static_cast<void>(x);
  static_cast<void>(y);
  model.fit(
      [](const dist::InputContext&) {
        return dist::data::tensor_slices(dist::Tensor<float>{{2, 2}}, dist::Tensor<float>{{2, 1}}) |
               dist::data::batch(2);
      },
      {.steps_per_epoch = 1});
#endif
}

int main() {}
