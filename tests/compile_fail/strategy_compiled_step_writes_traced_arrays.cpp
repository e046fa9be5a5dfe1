// expect: in a compiled step, a variable is written with a number or a traced array: pass a host tensor as an argument of the step
#include <dist/tpu.hpp>

int main() {
  dist::Tpu<> strategy;
  auto weights = strategy.variable<float, dist::OnWrite, dist::Mean>({2}, 1.0F);
  auto step = strategy.compile([&](auto& replica, const auto& values) {
#ifdef CONTROL
    weights.assign(replica, values);
#else
    weights.assign(replica, dist::Tensor<float>{{2}, {1, 2}});
#endif
  });
  step(dist::Tensor<float>{{2}, {1, 2}});
}
