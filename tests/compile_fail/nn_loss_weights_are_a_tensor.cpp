// expect: sample weights are a tensor
#include <dist/nn/losses/reduced.hpp>
#include <dist/nn/losses/regression.hpp>
#include <dist/strategy/default.hpp>

namespace nn = dist::nn;

struct Outputs {
  dist::TensorView<const float> values;
  dist::TensorView<float> gradient;
};

int main() {
  dist::Default strategy;
  dist::Tensor<float> outputs{dist::Shape{2, 1}};
#ifdef CONTROL
  dist::Tensor<float> weights{dist::Shape{2}};
#else
  const float weights = 1;
#endif
  strategy.run([&](auto& replica) {
    return nn::mean_squared_error(replica, Outputs{outputs.view(), outputs.view()}, outputs, 2, weights).value();
  });
}
