// expect: the global batch size is a number of examples
#include <vector>

#include <dist/nn/losses/average_loss.hpp>
#include <dist/strategy/default.hpp>

namespace nn = dist::nn;

int main() {
  dist::Default strategy;
  const std::vector<float> losses{1, 2};
#ifdef CONTROL
  const int examples = 2;
#else
  const float examples = 2;
#endif
  return nn::compute_average_loss(strategy.scope(), std::span<const float>{losses}, {.global_batch_size = examples}) >
         1;
}
