// expect: compute_average_loss without a global batch size must be called in a replica function
#include <vector>

#include <dist/nn/losses/average_loss.hpp>
#include <dist/strategy/default.hpp>

namespace nn = dist::nn;

int main() {
  dist::Default strategy;
  const std::vector<float> losses{1, 2};
#ifdef CONTROL
  return nn::compute_average_loss(strategy.scope(), std::span<const float>{losses}, {.global_batch_size = 2}) > 1 ? 0
                                                                                                                  : 1;
#else
  return nn::compute_average_loss(strategy.scope(), std::span<const float>{losses}) > 1 ? 0 : 1;
#endif
}
