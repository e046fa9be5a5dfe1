// expect: scale_regularization_loss must be called in a replica function
#include <dist/nn/losses/average_loss.hpp>
#include <dist/strategy/default.hpp>

namespace nn = dist::nn;

int main() {
  dist::Default strategy;
#ifdef CONTROL
  return strategy.run([](auto& replica) { return nn::scale_regularization_loss(replica, 1.0f); }) > 0 ? 0 : 1;
#else
  return nn::scale_regularization_loss(strategy.scope(), 1.0f) > 0 ? 0 : 1;
#endif
}
