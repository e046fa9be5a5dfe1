// expect: an nn::LossScale is updated on the host after each step, but a compiled step runs entirely on devices: compute with dist::BFloat16, which needs no scale, or call strategy.run
#include <dist/nn/loss_scale.hpp>
#include <dist/tpu.hpp>

int main() {
  dist::Tpu<> strategy;
  dist::nn::LossScale scale{strategy};
#ifdef CONTROL
  strategy.run([&](auto& replica) { static_cast<void>(scale.value(replica)); });
#else
  auto step = strategy.compile([&](auto& replica) { scale.apply(replica, 0); });
  step();
#endif
}
