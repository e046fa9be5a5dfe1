// expect: a compiled step has no scatter operations: compute the whole array and assign it
#include <dist/tpu.hpp>

int main() {
  dist::Tpu<> strategy;
  auto weights = strategy.variable<float, dist::OnWrite, dist::Mean>({2}, 1.0F);
  auto step = strategy.compile([&](auto& replica) {
#ifdef CONTROL
    weights.assign_add(replica, weights.read(replica));
#else
    weights.scatter_add(replica, dist::IndexedSlices<float>{{0}, dist::Tensor<float>{{1}}, {2}});
#endif
  });
  step();
}
