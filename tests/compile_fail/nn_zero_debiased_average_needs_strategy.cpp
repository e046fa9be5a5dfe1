// expect: an nn::ZeroDebiasedAverage needs a strategy as its first argument
#include <dist/nn/moving_average.hpp>
#include <dist/strategy/default.hpp>

namespace nn = dist::nn;

int main() {
  dist::Default strategy;
#ifdef CONTROL
  nn::ZeroDebiasedAverage average{strategy, dist::Shape{2}, 0.9F};
#else
  nn::ZeroDebiasedAverage average{dist::Shape{2}, 0.9F};
#endif
}
