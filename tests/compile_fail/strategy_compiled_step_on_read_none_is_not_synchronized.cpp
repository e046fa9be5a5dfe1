// expect: an OnRead variable with aggregation None has no common value of all replicas
#include <dist/tpu.hpp>

int main() {
  dist::Tpu<> strategy;
#ifdef CONTROL
  using Agg = dist::Sum;
#else
  using Agg = dist::None;
#endif
  auto loss = strategy.variable<float, dist::OnRead, Agg>({}, 0.0F);
  auto step = strategy.compile([&](auto& replica) { return loss.synchronized_value(replica); });
  static_cast<void>(step());
}
