// expect: the targets of a loss are a dist::Tensor, a dist::TensorView, or the outputs of a network
#include <vector>

#include <dist/nn/losses/regression.hpp>
#include <dist/strategy/default.hpp>

namespace nn = dist::nn;

struct Outputs {
  dist::TensorView<const float> values;
  dist::TensorView<float> gradient;
};

int main() {
  dist::Default strategy;
  dist::Tensor<float> outputs{dist::Shape{2, 3}};
#ifdef CONTROL
  const dist::Tensor<float> targets{dist::Shape{2, 3}};
#else
  const std::vector<float> targets(6);
#endif
  strategy.run([&](auto& replica) {
    return nn::mean_squared_error(replica, Outputs{outputs.view(), outputs.view()}, targets, 2).value();
  });
}
