// expect: uses nn::Reduction::Sum or nn::Reduction::None
#include <dist/nn/losses/reduced.hpp>
#include <dist/nn/losses/regression.hpp>
#include <dist/strategy/default.hpp>

namespace nn = dist::nn;

struct Outputs {
  dist::TensorView<const float> values;
  dist::TensorView<float> gradient;
};

#ifdef CONTROL
using Reduction = nn::Reduction::Sum;
#else
using Reduction = nn::Reduction::Auto;
#endif

int main() {
  dist::Default strategy;
  dist::Tensor<float> outputs{dist::Shape{2, 1}};
  const nn::Reduced loss{nn::MeanSquaredError{}, Reduction{}};
  strategy.run([&](auto& replica) { return loss(replica, Outputs{outputs.view(), outputs.view()}, outputs).value(); });
}
