// expect: a loss with nn::Reduction::None needs memory for its values
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
  dist::Tensor<float> losses{dist::Shape{2}};
  const nn::Reduced loss{nn::MeanSquaredError{}, nn::Reduction::None{}};
  strategy.run([&](auto& replica) {
#ifdef CONTROL
    loss(replica, outputs, outputs, losses.elements());
#else
    static_cast<void>(loss(replica, Outputs{outputs.view(), outputs.view()}, outputs));
#endif
  });
}
