// expect: nn::SparseCategoricalCrossentropy takes integer labels
#include <dist/nn/losses/sparse_categorical_crossentropy.hpp>
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
  const dist::Tensor<int> targets{dist::Shape{2}};
#else
  const dist::Tensor<float> targets{dist::Shape{2}};
#endif
  strategy.run([&](auto& replica) {
    return nn::sparse_categorical_crossentropy(replica, Outputs{outputs.view(), outputs.view()}, targets, 2).value();
  });
}
