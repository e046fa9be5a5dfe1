// expect: this is memory of a device, which the host cannot touch: give the work to replica.for_each
#include <dist/dist.hpp>
#include <dist/variable/embedding.hpp>
#include <dist/variable/make_sharded_variable.hpp>

struct Elsewhere {
#ifdef CONTROL
  static constexpr bool host_accessible = true;
#else
  static constexpr bool host_accessible = false;
#endif
};

int main() {
  float number = 1;
  const dist::TensorView<float, Elsewhere> view{&number, dist::Shape{1}};
  dist::Default strategy;
  const dist::TensorView<const int, Elsewhere> ids{nullptr, dist::Shape{0}};
  auto table = dist::sharded_variable<float>(strategy, dist::FixedShards{1}, {1, 1});
  static_cast<void>(dist::embedding_lookup(strategy.scope(), table, ids));
}
