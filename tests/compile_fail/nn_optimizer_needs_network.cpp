// expect: the second argument of an optimizer must be a network with parameters() and gradients()
#include <dist/nn/optimizer.hpp>
#include <dist/nn/optimizers/sgd.hpp>
#include <dist/strategy/default.hpp>

namespace nn = dist::nn;

struct Line {
  explicit Line(dist::Default& strategy)
      : weights(strategy.variable<float>(dist::Shape{2})), slopes(strategy.buffer<float>(dist::Shape{2})) {}

  auto& parameters() { return weights; }
#ifdef CONTROL
  auto& gradients() { return slopes; }
#else
  auto& gradient() { return slopes; }
#endif

  decltype(std::declval<dist::Default&>().variable<float>(dist::Shape{2})) weights;
  decltype(std::declval<dist::Default&>().buffer<float>(dist::Shape{2})) slopes;
};

int main() {
  dist::Default strategy;
  Line line{strategy};
  nn::Optimizer optimizer{strategy, line, nn::SGD{}};
  strategy.run([&](auto& replica) { optimizer.apply_gradients(replica); });
}
