// expect: a compiled step cannot use OnShard variables, because their elements have owners: use OnWrite
#include <dist/tpu.hpp>

int main() {
  dist::Tpu<> strategy;
#ifdef CONTROL
  using Sync = dist::OnWrite;
#else
  using Sync = dist::OnShard;
#endif
  auto moments = strategy.variable<float, Sync>({4}, 1.0F);
  auto step = strategy.compile([&](auto& replica) { static_cast<void>(moments.read(replica)); });
  step();
}
