// expect: an nn::LossScale decides on the host after each step, and a compiled step is done on devices as a whole: multiply numbers of dist::BFloat16, which need no scale, or call strategy.run
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
